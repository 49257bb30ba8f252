// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";
import type { Box } from "../pod/containers";
import { read } from "./stream";
import { LogWindow } from "./window";

/** Source says which logs a view shows. */
export interface Source {
  namespace: string;
  pod: string;
  uid: string;
  boxes: Box[];
  previous: boolean;
  tail?: number;
  since?: string;
}

/** Logs are a window and what is to be said of how it comes about. */
export interface Logs {
  window: LogWindow;
  problems: string[];
}

const redrawEvery = 60;

/** useLogs reads logs for as long as the view is there; a container that starts anew is read on. */
export function useLogs({ namespace, pod, uid, boxes, previous, tail, since }: Source): Logs {
  const [, redraw] = useState(0);
  const window = useRef(new LogWindow());
  const problems = useRef(new Map<string, string>());
  const whole = JSON.stringify([namespace, pod, uid, boxes.map((b) => b.spec.name), previous, tail, since]);
  const begun = useRef("");
  if (begun.current !== whole) {
    begun.current = whole;
    window.current = new LogWindow();
    problems.current = new Map();
  }
  let waiting = false;
  const changed = () => {
    if (!waiting) {
      waiting = true;
      setTimeout(() => {
        waiting = false;
        redraw((n) => n + 1);
      }, redrawEvery);
    }
  };
  const now = useRef(boxes);
  now.current = boxes;
  const readers = useRef(new Map<string, { run: string; stop: AbortController }>());
  useEffect(() => () => stopAll(readers.current), [whole]);
  const runs = boxes.map((b) => `${b.spec.name} ${runOf(b)}`).join();
  useEffect(() => {
    for (const box of boxes) {
      const container = box.spec.name;
      const run = runOf(box);
      const there = readers.current.get(container);
      if (there && (there.run === run || previous)) {
        continue; // it is being read, or was read to its end
      }
      there?.stop.abort();
      const stop = new AbortController();
      readers.current.set(container, { run, stop });
      const into = window.current;
      void read({ namespace, pod, container, previous, follow: !previous, tail, since }, into, {
        changed,
        runs: () => now.current.find((b) => b.spec.name === container)?.status?.state?.running !== undefined,
        problem: (message) => {
          problems.current.set(container, message);
          changed();
        },
      }, stop.signal);
    }
  }, [whole, runs]);
  const said = [...problems.current].filter(([, message]) => message).map(([container, message]) => `${container}: ${message}`);
  return { window: window.current, problems: said };
}

/** runOf is another one when there is a new run of a container to read. */
function runOf(box: Box): string {
  const { state, restartCount } = box.status ?? {};
  return state?.running || state?.terminated ? `${box.status?.containerID ?? ""}` : `${restartCount ?? 0} not yet`;
}

function stopAll(readers: Map<string, { stop: AbortController }>): void {
  for (const r of readers.values()) {
    r.stop.abort();
  }
  readers.clear();
}

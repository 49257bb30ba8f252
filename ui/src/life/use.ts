// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, kube, podPath } from "../api/client";
import { merge, type History } from "./history";

/** Life is a pod's history, or why there is none. */
export interface Life {
  history: History | null;
  received: number; // when it came, by this machine's clock
  problem?: ApiError;
}

const atMostEvery = 400;

/**
 * useLife fetches a pod's history anew whenever mark, which stands for all that is watched of the pod, is another. Marks
 * that come quickly do not put an answer off: of those that come while one is awaited, the last is asked about after it.
 */
export function useLife(namespace: string, name: string, mark: string): Life {
  const [life, set] = useState<Life>({ history: null, received: 0 });
  const asked = useRef({ at: -Infinity, last: 0, answered: 0 });
  const leaving = useRef(new AbortController());
  useEffect(() => {
    const stop = new AbortController();
    leaving.current = stop;
    return () => stop.abort();
  }, [namespace, name]);
  useEffect(() => {
    const ask = () => {
      asked.current.at = performance.now();
      const number = ++asked.current.last;
      const { signal } = leaving.current;
      const newest = () => number > asked.current.answered && Boolean((asked.current.answered = number));
      kube<History>(podPath(namespace, name, "timeline"), { signal }).then(
        (part) => newest() && set((l) => ({ history: merge(l.history, part), received: Date.now() })),
        (error: unknown) => {
          if (!signal.aborted && newest()) {
            const problem = error instanceof ApiError ? error : new ApiError(0, String(error));
            set((l) => ({ ...l, problem: problem.passing && l.history ? undefined : problem }));
          }
        },
      );
    };
    const timer = setTimeout(ask, Math.max(0, asked.current.at + atMostEvery - performance.now()));
    return () => clearTimeout(timer);
  }, [namespace, name, mark]);
  return life;
}

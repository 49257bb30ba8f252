// SPDX-License-Identifier: Apache-2.0

// The logs of a pod's containers, read into a window for as long as a view looks at them.

import { ApiError, podPath, query } from "../api/client";
import { Lines } from "../api/lines";
import { pageStreams } from "../api/stream";
import { waitAfter } from "../api/watch";
import type { LogWindow } from "./window";

/** Wish is what to read. */
export interface Wish {
  namespace: string;
  pod: string;
  container: string;
  previous: boolean;
  follow: boolean;
  tail?: number; // so many last lines; undefined: all
  since?: string; // from this time on
}

const longestLine = 256 << 10;

/** logPath is where a log is. */
export function logPath(wish: Wish): string {
  return (
    podPath(wish.namespace, wish.pod, "log") +
    query({
      container: wish.container, previous: wish.previous, follow: wish.follow, timestamps: true, tailLines: wish.tail, sinceTime: wish.since,
    })
  );
}

/** Told is what a reader hears beside the lines. */
export interface Told {
  changed(): void;
  problem(message: string): void; // "" when there is none any more
  /** Whether the container runs, so that there is more to come. */
  runs(): boolean;
}

/**
 * read reads a log into a window. A log that is followed is taken up again where it was, however it ended, for as long
 * as the container runs.
 */
export async function read(wish: Wish, window: LogWindow, told: Told, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const lines = new Lines(longestLine);
    const last = window.lastStamp(wish.container);
    // Times of requests are whole seconds: what comes twice is left out by the window.
    const again: Wish = last ? { ...wish, tail: undefined, since: last.replace(/\.\d+/, "") } : wish;
    const began = performance.now();
    try {
      await pageStreams.open(logPath(again), signal, {
        opened: () => told.problem(""),
        piece: (text) => {
          window.add(wish.container, lines.add(text), last);
          told.changed();
        },
      });
      window.add(wish.container, lines.end(), last);
      told.changed();
      if (!wish.follow || !told.runs()) {
        return;
      }
      failures = performance.now() - began > 2000 ? 0 : failures + 1;
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      const refusal = error instanceof ApiError ? error : new ApiError(0, "the log was cut off");
      if (!refusal.passing) {
        told.problem(refusal.message);
        return;
      }
      told.problem("Not connected; trying again.");
      failures++;
    }
    await new Promise((resolve) => setTimeout(resolve, waitAfter(failures, Math.random())));
  }
}

// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { ApiError, kube, podPath } from "../api/client";
import { merge, type History } from "./history";

/** Life is a pod's history, or why there is none. */
export interface Life {
  history: History | null;
  received: number; // when it came, by this machine's clock
  problem?: ApiError;
}

const atMostEvery = 400;

/** useLife fetches a pod's history anew whenever mark, which stands for all that is watched of the pod, is another. */
export function useLife(namespace: string, name: string, mark: string): Life {
  const [life, set] = useState<Life>({ history: null, received: 0 });
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      kube<History>(podPath(namespace, name, "timeline"), { signal: stop.signal }).then(
        (part) => set((l) => ({ history: merge(l.history, part), received: Date.now() })),
        (error: unknown) => {
          if (!stop.signal.aborted) {
            const problem = error instanceof ApiError ? error : new ApiError(0, String(error));
            set((l) => ({ ...l, problem: problem.passing && l.history ? undefined : problem }));
          }
        },
      );
    }, life.received ? atMostEvery : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [namespace, name, mark]);
  return life;
}

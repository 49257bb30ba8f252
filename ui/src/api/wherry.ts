// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";
import { ApiError, kube } from "./client";

const again = 2000;

/**
 * useWherry says whether the API server is Wherry's; undefined until it has answered. Another one does not know debug
 * sessions and image exec, and would take either for a command in the pod's own container.
 */
export function useWherry(): boolean | undefined {
  const [is, set] = useState<boolean | undefined>(undefined);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = () =>
      kube<{ gitVersion?: string }>("/version", { signal: stop.signal }).then(
        (v) => set(v.gitVersion?.includes("+wherry") ?? false),
        (error) => {
          if (stop.signal.aborted) {
            return;
          }
          if (error instanceof ApiError && error.passing) {
            timer = setTimeout(ask, again); // it is away, which says nothing of what it is
          } else {
            set(false);
          }
        },
      );
    void ask();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, []);
  return is;
}

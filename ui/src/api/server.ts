// SPDX-License-Identifier: Apache-2.0

// What kind of server it is.

import { useEffect, useState } from "preact/hooks";
import { kube } from "./client";
import { insist } from "./rights";

/** useWherry says whether the server knows debug sessions and image exec: another one would take them for commands in the pod's own container. It is undefined until it has answered. */
export function useWherry(): boolean | undefined {
  const [is, set] = useState<boolean | undefined>(undefined);
  useEffect(() => {
    const stop = new AbortController();
    insist(() => kube<{ gitVersion?: string }>("/version", { signal: stop.signal }), stop.signal)
      .then((v) => set(v.gitVersion?.includes("+wherry") ?? false), () => stop.signal.aborted || set(false));
    return () => stop.abort();
  }, []);
  return is;
}

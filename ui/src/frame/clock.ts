// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";

/** useNow is the time, to the second or so, for ages; it stands still while nobody looks. */
export function useNow(every = 1000): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) {
        set(Date.now());
      }
    }, every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

// SPDX-License-Identifier: Apache-2.0

import { useEffect, useState } from "preact/hooks";

/** useMedia reports whether a media query holds now. */
export function useMedia(media: string): boolean {
  const [holds, set] = useState(() => matchMedia(media).matches);
  useEffect(() => {
    const list = matchMedia(media);
    const look = () => set(list.matches);
    list.addEventListener("change", look);
    return () => list.removeEventListener("change", look);
  }, [media]);
  return holds;
}

// SPDX-License-Identifier: Apache-2.0

import { useState } from "preact/hooks";

const shownFor = 2500;

/** useCopy puts a text on the clipboard, and says for a moment what came of it. */
export function useCopy(): [told: string, copy: (text: string) => Promise<void>] {
  const [told, tell] = useState("");
  const copy = async (text: string) => {
    try {
      await navigator.clipboard.writeText(text);
      tell("copied");
    } catch {
      tell("your browser does not let a page copy: select it");
    }
    setTimeout(() => tell(""), shownFor);
  };
  return [told, copy];
}

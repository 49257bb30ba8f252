// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren } from "preact";

/** Scroll holds what may be wider than the screen: the keyboard reaches it, and moves what is in it. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>{children}</div>;
}

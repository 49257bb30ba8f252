// SPDX-License-Identifier: Apache-2.0

// A list of which only what is seen is in the document: 2,000 pods and a million lines scroll alike.

import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** Span is which rows of a list are to be drawn: from, up to and without to. */
export interface Span {
  from: number;
  to: number;
}

const more = 8; // rows beyond what is seen, so that a quick scroll shows no gap

/** spanOf says which rows are seen. */
export function spanOf(top: number, height: number, row: number, rows: number): Span {
  const from = Math.max(0, Math.min(rows, Math.floor(top / row) - more));
  return { from, to: Math.min(rows, Math.ceil((top + height) / row) + more) };
}

interface Properties {
  box: RefObject<HTMLElement | null>; // what scrolls
  rows: number;
  rowHeight: number;
  children: (span: Span) => ComponentChildren;
}

/** Virtual draws the rows of a list that are seen in a box. */
export function Virtual({ box, rows, rowHeight, children }: Properties) {
  const [seen, set] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) {
      return;
    }
    const look = () => set((s) => {
      const { scrollTop: top, clientHeight: height } = element;
      return s.top === top && s.height === height ? s : { top, height };
    });
    look();
    element.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, []);
  const span = spanOf(seen.top, seen.height, rowHeight, rows);
  return (
    <div class="virtual" style={{ height: `${rows * rowHeight}px` }}>
      <div class="virtual-seen" style={{ transform: `translateY(${span.from * rowHeight}px)` }}>
        {children(span)}
      </div>
    </div>
  );
}

/** show scrolls a box so that a row of its list is seen. */
export function show(box: HTMLElement, index: number, rowHeight: number, above = 0): void {
  const top = index * rowHeight;
  if (top < box.scrollTop) {
    box.scrollTop = top;
  } else if (top + rowHeight + above > box.scrollTop + box.clientHeight) {
    box.scrollTop = top + rowHeight + above - box.clientHeight;
  }
}

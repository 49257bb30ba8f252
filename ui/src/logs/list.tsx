// SPDX-License-Identifier: Apache-2.0

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { show, Virtual } from "../frame/virtual";
import { whole } from "./line";
import { clock, LogRow } from "./row";
import type { Entry } from "./window";

interface Properties {
  entries: Entry[];
  version: number;
  dropped: number;
  many: boolean;
  names: string[];
  side: boolean; // a column for each container
  times: boolean;
  folded: boolean;
  text: string;
  places: number[]; // of the lines where text is found
  follow: boolean;
  setFollow: (on: boolean) => void;
  at?: number; // the moment to begin at
}

const rowHeight = 20;
const headHeight = 26;

/** LogList is the lines of logs, of which only those that are seen are drawn, and a pane with all of a chosen one. */
export function LogList(p: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const [chosen, choose] = useState<Entry | null>(null);
  const arrived = useRef(false);
  const { entries, follow, at, names } = p;
  const side = p.side && p.many;
  const columns = useMemo(() => new Map(names.map((name, i) => [name, i])), [names.join()]);
  const index = chosen ? entries.indexOf(chosen) : -1;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || entries.length === 0) {
      return;
    }
    if (at !== undefined && !arrived.current) {
      const place = entries.findIndex((e) => e.at >= at);
      if (place >= 0) {
        arrived.current = true;
        choose(entries[place]!);
        element.scrollTop = Math.max(0, (place - 4) * rowHeight);
      }
    } else if (follow) {
      element.scrollTop = element.scrollHeight;
    }
  }, [p.version, entries.length, follow, at]);
  const move = (to: number) => {
    const entry = entries[Math.max(0, Math.min(entries.length - 1, to))];
    if (entry && box.current) {
      p.setFollow(false);
      choose(entry);
      show(box.current, Math.max(0, Math.min(entries.length - 1, to)), rowHeight, side ? headHeight : 0);
    }
  };
  useEffect(() => {
    const element = box.current;
    const next = (event: Event) => {
      const step = (event as CustomEvent<number>).detail;
      const place = step > 0 ? p.places.find((i) => i > index) ?? p.places[0] : p.places.findLast((i) => i < index) ?? p.places[p.places.length - 1];
      if (place !== undefined) {
        move(place);
      }
    };
    element?.addEventListener("wherry-find", next);
    return () => element?.removeEventListener("wherry-find", next);
  });
  const key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / rowHeight) - 1);
    const from = index < 0 ? Math.floor((box.current?.scrollTop ?? 0) / rowHeight) : index;
    const to = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: entries.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      move(to);
    } else if (event.key === "Escape" && chosen) {
      choose(null);
    }
  };
  const scrolled = (event: WheelEvent) => {
    if (event.deltaY < 0 && follow) {
      p.setFollow(false);
    }
  };
  const dragged = (event: Event) => {
    if (follow && (event.type === "touchmove" || event.target === event.currentTarget)) { // a finger, or the scrollbar
      p.setFollow(false);
    }
  };
  return (
    <>
      <div ref={box} class={`log-list${side ? " side-by-side" : ""}${p.times ? " timed" : ""}`} style={side ? { "--columns": names.length } : { "--columns": 1 }} role={entries.length > 0 ? "listbox" : "region"} tabIndex={0} aria-label="Lines" onKeyDown={key} onWheel={scrolled} onTouchMove={dragged} onPointerDown={dragged}
        aria-activedescendant={index >= 0 ? `line-${index + p.dropped}` : undefined}>
        {side && (
          <div class="log-row side log-head" aria-hidden="true">
            {p.times && <span>Time</span>}
            {names.map((name, i) => <span key={name} class={`hue-${i % 6}`}>{name}</span>)}
          </div>
        )}
        <Virtual box={box} rows={entries.length} rowHeight={rowHeight}>
          {(span) => entries.slice(span.from, span.to).map((entry, i) => (
            <LogRow key={span.from + i + p.dropped} id={`line-${span.from + i + p.dropped}`} entry={entry} hue={p.many ? columns.get(entry.container) ?? 0 : -1} column={side ? columns.get(entry.container) ?? 0 : -1} times={p.times}
              folded={p.folded} text={p.text} chosen={entry === chosen} choose={() => { p.setFollow(false); choose(entry === chosen ? null : entry); }} />
          ))}
        </Virtual>
        {entries.length === 0 && <p class="pad dim">{p.text ? "No line has that in it." : "No lines."}</p>}
      </div>
      {chosen && (
        <section class="log-whole" aria-label="The chosen line">
          <div class="card-head">
            <strong>{chosen.container}</strong>
            <span class="dim">{Number.isFinite(chosen.at) ? `${new Date(chosen.at).toLocaleDateString()} ${clock(chosen.at)}` : ""}</span>
            <span class="fill" />
            <button type="button" class="quiet" onClick={() => choose(null)}>Close</button>
          </div>
          <pre>{whole(chosen.text).slice(0, 200_000)}</pre>
        </section>
      )}
    </>
  );
}

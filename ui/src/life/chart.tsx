// SPDX-License-Identifier: Apache-2.0

// The drawing of a pod's life. Bars can be pointed at, and reached by the keyboard: one stop for Tab, arrows between.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Axis } from "./axis";
import { inks, signs } from "./palette";
import type { Bar, Mark, Picture, PictureRow, Shade, Sign } from "./picture";
import { took } from "./words";

interface Properties {
  picture: Picture;
  title: string;
  open: (container: string, at: number, attempt: number) => void;
}

const top = 30;
const barHeight = 16;
const order: Record<Sign, number> = { passed: 0, died: 1, done: 2, failed: 3 };

/** factOf says what a bar is, in words. */
export function factOf(picture: Picture, row: PictureRow, bar: Bar): string {
  const parts = [`${row.label}: ${inks[bar.shade].name} ${took(bar.to - bar.from)}${bar.open ? " so far" : ""}`,
    `from ${took(bar.from - picture.from)}`, new Date(bar.from).toLocaleTimeString()];
  if (bar.attempt > 0) {
    parts.push(`attempt ${bar.attempt}`);
  }
  if (bar.failed) {
    parts.push(`failed: ${bar.text}`);
  }
  return parts.join(", ");
}

function factOfMark(picture: Picture, row: PictureRow, mark: Mark): string {
  return `${row.label}: ${mark.text || signs[mark.sign].name}, at ${took(mark.at - picture.from)}, ${new Date(mark.at).toLocaleTimeString()}`;
}

/** LifeChart draws a picture as wide as there is room. */
export function LifeChart({ picture, title, open }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  const [fact, setFact] = useState("");
  const [focus, setFocus] = useState(0);
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(() => setWidth(Math.max(240, box.current?.clientWidth ?? 900)));
    if (box.current) {
      sizes.observe(box.current);
    }
    return () => sizes.disconnect();
  }, []);
  const narrow = width < 640;
  const [left, right] = narrow ? [4, 4] : [150, 200];
  const rowHeight = narrow ? 46 : 32;
  const axis = useMemo(() => new Axis(picture, width - left - right), [picture, width]);
  const height = top + rowHeight * picture.rows.length + 6;
  const bars = picture.rows.flatMap((row) => row.bars.map((bar) => ({ row, bar })));
  const key = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined && event.key !== "Enter") {
      return;
    }
    event.preventDefault();
    if (step === undefined) {
      const at = bars[focus];
      if (at) {
        open(at.row.name, at.bar.from, at.bar.attempt);
      }
      return;
    }
    const to = Math.max(0, Math.min(bars.length - 1, focus + step));
    setFocus(to);
    box.current?.querySelectorAll<SVGElement>("rect.bar")[to]?.focus();
  };
  let number = 0;
  return (
    <div class="life" ref={box}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={title} onKeyDown={key}
        onMouseLeave={() => setFact("")}>
        <title>{title}</title>
        <Scale axis={axis} left={left} bottom={height - 4} width={width - right} />
        {picture.rows.map((row, i) => {
          const y = top + rowHeight * i + (narrow ? 20 : 8);
          const text = narrow ? y - 6 : y + 12;
          const first = number;
          number += row.bars.length;
          return (
            <g key={row.kind + row.name}>
              <text class="label" x={narrow ? left : 0} y={text}>{fit(row.label, narrow ? 26 : 20)}</text>
              <text class="state" x={narrow ? width - right : width - right + 12} y={text} text-anchor={narrow ? "end" : "start"}>
                {fit(row.state, 28)}
              </text>
              {row.bars.map((bar, j) => (
                <BarRect key={j} bar={bar} x={left + axis.at(bar.from)} to={left + axis.at(bar.to)} y={y} fact={factOf(picture, row, bar)}
                  tab={first + j === focus} say={setFact} focused={() => setFocus(first + j)}
                  open={(at) => open(row.name, at, bar.attempt)} axis={axis} left={left} />
              ))}
              {seen(row.marks, axis).map((mark, j) => (
                <text key={j} class="mark" x={left + axis.at(mark.at)} y={y + 13} fill={signs[mark.sign].fill} text-anchor="middle"
                  onMouseEnter={() => setFact(factOfMark(picture, row, mark))} onClick={() => open(row.name, mark.at, 0)}>
                  {signs[mark.sign].text}
                  <title>{factOfMark(picture, row, mark)}</title>
                </text>
              ))}
            </g>
          );
        })}
      </svg>
      <p class="fact" aria-live="polite">{fact || "Point at a stretch, or go to it by Tab and arrows; Enter or a click opens the log at that moment."}</p>
      <Legend picture={picture} />
    </div>
  );
}

interface BarProperties {
  bar: Bar;
  x: number;
  to: number;
  y: number;
  fact: string;
  tab: boolean;
  axis: Axis;
  left: number;
  say: (fact: string) => void;
  focused: () => void;
  open: (at: number) => void;
}

function BarRect({ bar, x, to, y, fact, tab, say, focused, open, axis, left }: BarProperties) {
  const click = (event: MouseEvent) => {
    const drawing = (event.currentTarget as SVGElement).ownerSVGElement!.getBoundingClientRect();
    open(axis.time(event.clientX - drawing.left - left));
  };
  return (
    <rect class="bar" x={x} y={y} width={Math.max(to - x, 1.5)} height={barHeight} fill={inks[bar.shade].fill} rx={1.5}
      tabIndex={tab ? 0 : -1} role="button" aria-label={fact} onClick={click} onMouseEnter={() => say(fact)}
      onFocus={() => { say(fact); focused(); }}>
      <title>{fact}</title>
    </rect>
  );
}

function Scale({ axis, left, bottom, width }: { axis: Axis; left: number; bottom: number; width: number }) {
  let free = -Infinity;
  return (
    <g class="scale">
      {axis.ticks(80).map((tick, i) => {
        const x = left + tick.at;
        const room = x >= free && x < width + 30;
        free = room ? x + 44 : free;
        return (
          <g key={i}>
            <line x1={x} y1={top - 8} x2={x} y2={bottom} />
            {room && <text x={x} y={top - 14} text-anchor={x < 20 ? "start" : "middle"}>{tick.label}</text>}
          </g>
        );
      })}
      {axis.cuts().map((x, i) => (
        <line key={"cut" + i} class="cut" x1={left + x} y1={top - 8} x2={left + x} y2={bottom}><title>a quiet stretch, cut short</title></line>
      ))}
    </g>
  );
}

function Legend({ picture }: { picture: Picture }) {
  const shades = new Set<Shade>(picture.rows.flatMap((r) => r.bars.map((b) => b.shade)));
  const found = new Set<Sign>(picture.rows.flatMap((r) => r.marks.map((m) => m.sign)));
  return (
    <ul class="legend">
      {(Object.keys(inks) as Shade[]).filter((s) => shades.has(s)).map((s) => (
        <li key={s}><svg width="14" height="12" aria-hidden="true"><rect width="14" height="12" rx="2" fill={inks[s].fill} /></svg>{inks[s].name}</li>
      ))}
      {(Object.keys(signs) as Sign[]).filter((s) => found.has(s)).map((s) => (
        <li key={s}><svg width="14" height="14" aria-hidden="true"><text class="mark" x="7" y="12" text-anchor="middle" fill={signs[s].fill}>{signs[s].text}</text></svg>{signs[s].name}</li>
      ))}
    </ul>
  );
}

/** seen are the marks to draw: of those on one place the most telling. */
function seen(marks: Mark[], axis: Axis): Mark[] {
  const places = new Map<number, Mark>();
  for (const mark of marks) {
    const place = Math.round(axis.at(mark.at) / 9);
    const there = places.get(place);
    if (!there || order[mark.sign] >= order[there.sign]) {
      places.set(place, mark);
    }
  }
  return [...places.values()];
}

function fit(text: string, longest: number): string {
  return text.length > longest ? text.slice(0, longest - 1) + "…" : text;
}

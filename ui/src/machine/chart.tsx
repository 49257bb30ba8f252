// SPDX-License-Identifier: Apache-2.0

// A chart of what is used. This is a file of its own in the build, with uPlot, which is loaded where charts are looked at.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Lines } from "./history";

interface Properties {
  title: string;
  names: readonly string[]; // of the lines, the node's first
  lines: Lines;
  words: (value: number) => string;
  binary?: boolean; // the scale goes by powers of two
}

const height = 150;
const narrowest = 120; // seconds that are shown at least

/** Chart draws lines over time; the legend has their values now, or where the pointer is, as text. */
export default function Chart({ title, names, lines, words, binary }: Properties) {
  const host = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLUListElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointed, point] = useState<number | null>(null);
  const key = names.join("\n");
  useLayoutEffect(() => {
    const element = host.current!;
    const colourOf = (i: number) => getComputedStyle(legend.current?.children[i]?.firstElementChild ?? element).color;
    const made = new uPlot(optionsFor(element, names.length, colourOf, words, binary === true, point), lines as uPlot.AlignedData, element);
    plot.current = made;
    const sizes = new ResizeObserver(() => element.clientWidth > 0 && made.setSize({ width: element.clientWidth, height }));
    sizes.observe(element);
    const stop = onTheme(() => made.redraw(false));
    return () => {
      sizes.disconnect();
      stop();
      made.destroy();
      plot.current = null;
    };
  }, [key]);
  useEffect(() => plot.current?.setData(lines as uPlot.AlignedData), [lines]);
  const times = lines[0]!;
  const at = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  const when = new Date((times[at] ?? 0) * 1000).toLocaleTimeString();
  return (
    <figure class="chart">
      <figcaption><strong>{title}</strong> <span class="dim">{pointed === null ? "now" : when}</span></figcaption>
      <div ref={host} class="chart-lines" role="img" aria-label={`${title} over the last hour; the list below has the figures`} />
      <ul ref={legend} class="chart-legend">
        {names.map((name, i) => (
          <li key={name}>
            <span class={`chart-hue hue-${i}`} aria-hidden="true">━</span> <span class="chart-name" title={name}>{name}</span>
            <span class="dim">{valueWords(lines[i + 1]?.[at], words)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function valueWords(value: number | null | undefined, words: (value: number) => string): string {
  return value === null || value === undefined ? "?" : words(value);
}

type Point = (index: number | null) => void;

function optionsFor(element: HTMLElement, count: number, colourOf: (i: number) => string, words: (value: number) => string, binary: boolean, point: Point): uPlot.Options {
  const style = (name: string) => () => getComputedStyle(element).getPropertyValue(name).trim();
  const axis = { stroke: style("--dim"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1, size: 4 } };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false },
    scales: {
      x: { time: true, range: (_, min, max) => [Math.min(min, max - narrowest), max] },
      y: { range: (_, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    series: [{}, ...Array.from({ length: count }, (_, i) => ({ stroke: () => colourOf(i), width: i === 0 ? 2 : 1.25, points: { show: false } }))],
    axes: [
      { ...axis, size: 28, space: 64, values: (_, splits, _axis, _space, step) => splits.map((s) => clock(s, step < 60)) },
      { ...axis, size: 76, values: (_, splits) => splits.map(words), ...(binary ? { incrs: Array.from({ length: 52 }, (_, i) => 2 ** i) } : {}) },
    ],
    hooks: { setCursor: [(self) => point(self.cursor.left !== undefined && self.cursor.left >= 0 ? self.cursor.idx ?? null : null)] },
  };
}

/** clock is a time as it stands below a chart. */
function clock(seconds: number, exact: boolean): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: exact ? "2-digit" : undefined, hourCycle: "h23" });
}

/** onTheme calls f when the page's colours are others; it returns how to stop that. */
function onTheme(f: () => void): () => void {
  const root = new MutationObserver(f);
  root.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", f);
  return () => {
    root.disconnect();
    system.removeEventListener("change", f);
  };
}

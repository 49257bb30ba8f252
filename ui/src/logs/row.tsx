// SPDX-License-Identifier: Apache-2.0

import { memo } from "preact/compat";
import { fold, pieces, plain } from "./line";
import type { Entry } from "./window";

interface Properties {
  entry: Entry;
  id: string;
  hue: number; // which container's colour; negative: not shown
  column: number; // where lines of several containers stand side by side; negative: they do not
  times: boolean;
  folded: boolean;
  text: string; // what is searched for
  chosen: boolean;
  choose: () => void;
}

const shown = 1200; // characters of a line in the list; the pane below has all

/** LogRow is a line of a log. All of it is text: nothing that a container writes is markup. */
export const LogRow = memo(function LogRow({ entry, id, hue, column, times, folded, text, chosen, choose }: Properties) {
  const line = plain(entry.text.length > shown ? entry.text.slice(0, shown) + "…" : entry.text);
  const json = folded ? fold(entry.text) : null;
  const place = column >= 0 ? `log-text in-column hue-line-${hue % 6}` : "log-text";
  const at = column >= 0 ? { gridColumn: String(column + (times ? 2 : 1)) } : undefined;
  const name = column >= 0 && <span class="hidden-text">{entry.container}: </span>;
  return (
    <div id={id} class={`log-row${chosen ? " chosen" : ""}${column >= 0 ? " side" : ""}`} role="option" aria-selected={chosen} onClick={choose}>
      {times && <span class="log-time">{clock(entry.at)}</span>}
      {hue >= 0 && column < 0 && <span class={`log-container hue-${hue % 6}`}>{entry.container}</span>}
      {json ? (
        <span class={place} style={at}>
          {name}
          {json.level && <span class={`level level-${tone(json.level)}`}>{json.level}</span>}
          <Marked line={plain(json.message)} text={text} />{" "}
          <span class="dim"><Marked line={plain(json.rest.slice(0, shown))} text={text} /></span>
        </span>
      ) : <span class={place} style={at}>{name}<Marked line={line} text={text} /></span>}
    </div>
  );
}, (a, b) => a.entry === b.entry && a.id === b.id && a.hue === b.hue && a.column === b.column && a.times === b.times && a.folded === b.folded &&
  a.text === b.text && a.chosen === b.chosen);

function Marked({ line, text }: { line: string; text: string }) {
  return <>{pieces(line, text).map((p, i) => (p.found ? <mark key={i}>{p.text}</mark> : p.text))}</>;
}

function tone(level: string): string {
  if (/^(err|fatal|crit|panic|alert|emerg)/.test(level)) {
    return "bad";
  }
  return level.startsWith("warn") ? "busy" : "idle";
}

/** clock is the time of day of a line, to the millisecond. */
export function clock(at: number): string {
  if (!Number.isFinite(at)) {
    return "";
  }
  const d = new Date(at);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}

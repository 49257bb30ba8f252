// SPDX-License-Identifier: Apache-2.0

// What is shown of a line: plain text, and JSON folded to what a person looks for.

/** Folded is a line of JSON in short. */
export interface Folded {
  level: string; // "error", "warn", "" ...
  message: string;
  rest: string; // key=value of the other fields
}

// eslint-disable-next-line no-control-regex -- terminals' colours, which are no text
const colours = /\u001b\[[0-9;:]*[A-Za-z]/g;
// eslint-disable-next-line no-control-regex -- characters that draw nothing
const controls = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** plain is a line without what was meant for a terminal. */
export function plain(text: string): string {
  return text.includes("\u001b") || controls.test(text) ? text.replace(colours, "").replace(controls, "") : text;
}

const messages = ["msg", "message", "event", "log", "text"];
const levels = ["level", "severity", "lvl", "log.level"];
const times = new Set(["time", "ts", "timestamp", "@timestamp", "t", "date"]);

/** fold reads a line of JSON; null if it is none. */
export function fold(line: string): Folded | null {
  if (!line.startsWith("{") || line.length > 64 << 10) {
    return null;
  }
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
  const message = messages.find((k) => typeof fields[k] === "string");
  const level = levels.find((k) => typeof fields[k] === "string" || typeof fields[k] === "number");
  const rest = Object.entries(fields).filter(([k]) => k !== message && k !== level && !times.has(k));
  return {
    level: level ? levelWord(fields[level]) : "",
    message: message ? String(fields[message]) : "",
    rest: rest.map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join(" "),
  };
}

/** levelWord is a level in words; some programs write numbers. */
function levelWord(level: unknown): string {
  if (typeof level === "number") {
    return level >= 50 ? "error" : level >= 40 ? "warn" : level >= 30 ? "info" : "debug";
  }
  return String(level).toLowerCase().slice(0, 12);
}

/** whole is a line for the pane that shows all of it: JSON is indented. */
export function whole(line: string): string {
  if (line.startsWith("{") || line.startsWith("[")) {
    try {
      return JSON.stringify(JSON.parse(line), null, 2);
    } catch {
      // no JSON after all
    }
  }
  return line;
}

/** Piece is a part of a line, found or not. */
export interface Piece {
  text: string;
  found: boolean;
}

/** pieces cuts a line where a text is found in it. */
export function pieces(line: string, text: string): Piece[] {
  if (!text) {
    return [{ text: line, found: false }];
  }
  const out: Piece[] = [];
  const [low, wanted] = [line.toLowerCase(), text.toLowerCase()];
  if (low.length !== line.length) {
    return [{ text: line, found: false }]; // letters that get longer in lower case: places do not fit
  }
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0 && out.length < 200; at = low.indexOf(wanted, from)) {
    out.push({ text: line.slice(from, at), found: false }, { text: line.slice(at, at + wanted.length), found: true });
    from = at + wanted.length;
  }
  out.push({ text: line.slice(from), found: false });
  return out.filter((p) => p.text !== "");
}

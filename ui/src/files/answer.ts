// SPDX-License-Identifier: Apache-2.0

// What cp-look, the toolbox's program in the pod, is asked and answers: a line of JSON each. The pod is not trusted to
// answer well.

export type Kind = "f" | "d" | "l" | "p" | "s" | "c" | "b";

/** Entry is a file. Its names are escaped. */
export interface Entry {
  name: string;
  kind: Kind;
  size: number;
  mode: number;
  uid: number;
  gid: number;
  time: number; // milliseconds, NaN if it is not known
  changed: number;
  to: string; // of a link
  folder: boolean; // it is a folder, or a link to one
  kernel: boolean;
  mount: boolean;
  image: boolean; // the image has something by this name
  gone: boolean; // the container has it no more: it is the image's
}

/** Difference is what two folders do not have alike. */
export interface Difference {
  name: string;
  one?: Entry;
  two?: Entry;
  how: string[];
}

/** Run is which run of a container has the files. */
export interface Run {
  attempt: number;
  state: string; // running, exited, unknown
}

/** Answer is one line. */
export interface Answer {
  error: string;
  end: boolean;
  data: Uint8Array<ArrayBuffer> | null;
  file?: Entry;
  files: Entry[];
  users: Record<string, string>;
  groups: Record<string, string>;
  runs: Record<string, Run>;
  differ: Difference[];
  more: string;
  notes: string[];
  visited: number;
  got: number | null;
}

/** Question is what is asked, of one container's files. */
export type Question =
  | { do: "containers" }
  | { do: "list" | "read" | "send" | "pack"; root: string; path: string; from?: number; most?: number }
  | { do: "changed"; root: string; path: string }
  | { do: "compare"; root: string; path: string; with: { root: string; path: string } }
  | { do: "put"; root: string; path: string; name: string; size: number; over: boolean };

type Fields = Record<string, unknown>;

/** answerFrom reads a line; it throws if that is none. */
export function answerFrom(line: string): Answer {
  const a = fields(JSON.parse(line));
  return {
    error: text(a.error), end: a.end === true, data: typeof a.data === "string" ? bytesFrom(a.data) : null,
    file: a.file === undefined ? undefined : entryFrom(a.file), files: list(a.files).map(entryFrom), users: words(a.users), groups: words(a.groups), runs: runsFrom(a.runs),
    differ: list(a.differ).map(differenceFrom), more: text(a.more), notes: list(a.notes).map(text), visited: number(a.visited, 0),
    got: a.got === undefined ? null : number(a.got, 0),
  };
}

function entryFrom(value: unknown): Entry {
  const e = fields(value);
  const kind = text(e.kind);
  return {
    name: text(e.name), kind: (/^[fdlpscb]$/.test(kind) ? kind : "f") as Kind, size: number(e.size, 0), mode: number(e.mode, 0) & 0o7777,
    uid: number(e.uid, 0), gid: number(e.gid, 0), time: Date.parse(text(e.time)), changed: Date.parse(text(e.changed)), to: text(e.to),
    folder: e.folder === true, kernel: e.kernel === true, mount: e.mount === true,
    image: e.image === true, gone: e.gone === true,
  };
}

function runsFrom(value: unknown): Record<string, Run> {
  const out = Object.create(null) as Record<string, Run>;
  for (const [name, run] of Object.entries(typeof value === "object" && value ? value : {})) {
    const r = fields(run);
    out[name] = { attempt: number(r.attempt, 0), state: text(r.state) };
  }
  return out;
}

function differenceFrom(value: unknown): Difference {
  const d = fields(value);
  return {
    name: text(d.name), one: d.one === undefined ? undefined : entryFrom(d.one), two: d.two === undefined ? undefined : entryFrom(d.two),
    how: list(d.how).map(text),
  };
}

function fields(value: unknown): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error("what came from the pod is not an answer");
  }
  return value as Fields;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

function words(value: unknown): Record<string, string> {
  const out: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [k, v] of Object.entries(typeof value === "object" && value ? value : {})) {
    out[k] = text(v);
  }
  return out;
}

/** bytesFrom reads base64. */
export function bytesFrom(base64: string): Uint8Array<ArrayBuffer> {
  const letters = atob(base64);
  const out = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) {
    out[i] = letters.charCodeAt(i);
  }
  return out;
}

/** base64From writes it. */
export function base64From(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let i = 0; i < bytes.length; i += 8192) {
    parts.push(String.fromCharCode(...bytes.subarray(i, i + 8192)));
  }
  return btoa(parts.join(""));
}

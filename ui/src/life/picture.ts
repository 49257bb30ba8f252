// SPDX-License-Identifier: Apache-2.0

// A history laid out as rows of bars and marks, by the same rules as `wherry timeline`.

import { beginOf, endOf, hasEnded, inOrder, time, type History } from "./history";
import { stateOf } from "./state";
import { exitWords, tracksOf, type Attempt, type Operation, type Track } from "./tracks";
import { describe } from "./words";

/** Shade is what a bar stands for. Those of a running container get stronger as it gets more useful. */
export type Shade =
  | "quiet" | "up" | "serving" | "pause" | "volumes" | "sandbox" | "pull" | "create" | "start" | "postStart" | "preStop" | "stop" | "leave";

export interface Bar {
  from: number;
  to: number;
  shade: Shade;
  attempt: number;
  open: boolean;
  failed: boolean;
  text: string;
}

export type Sign = "passed" | "died" | "done" | "failed";

export interface Mark {
  at: number;
  sign: Sign;
  text: string;
}

export interface PictureRow {
  name: string; // of the container, "" for the pod's own
  kind: string;
  label: string;
  state: string;
  bars: Bar[];
  marks: Mark[];
}

export interface Picture {
  from: number;
  to: number;
  rows: PictureRow[];
}

const shades: Record<string, Shade> = {
  volumes: "volumes", sandbox: "sandbox", pull: "pull", start: "create", postStart: "postStart", preStop: "preStop", stop: "stop",
  takeDown: "leave", cleanUp: "leave",
};

/** draw lays a history out. */
export function draw(history: History): Picture {
  const [pod, ...containers] = tracksOf(history);
  const end = endOf(history);
  const rows = [podRow(history, pod!, end), ...containers.map((t) => containerRow(history, t, end))];
  const from = Math.min(beginOf(history), ...rows.flatMap((r) => r.bars.map((b) => b.from)));
  return { from, to: Math.max(end, from), rows };
}

/** labelOf is a container as people call it: "init page", "sidecar proxy", "web". */
export function labelOf(name: string, kind: string): string {
  if (kind === "init" || kind === "sidecar") {
    return `${kind} ${name}`;
  }
  return kind === "ephemeral" && !name.startsWith("debug") ? `debug ${name}` : name;
}

function podRow(history: History, track: Track, end: number): PictureRow {
  const row: PictureRow = { name: "", kind: "pod", label: "pod", state: stateOf(history, track), bars: [], marks: [] };
  const life = track.attempts[0];
  if (!life) {
    return row;
  }
  life.operations.forEach((o) => operation(row, o, o.to));
  const sandbox = life.operations.find((o) => o.what === "sandbox" && !o.failed && !o.open);
  if (sandbox) {
    const left = inOrder(history).find((m) => m.what === "left" && !m.container);
    let over = left ? time(left.at) : end;
    for (const o of life.operations) {
      if (o.what === "takeDown" && o.from > sandbox.to) {
        over = Math.min(over, o.from);
      }
    }
    running(row, life, true, sandbox.to, over, over === end && !history.gone);
  }
  return row;
}

function containerRow(history: History, track: Track, end: number): PictureRow {
  const { name, kind, attempts } = track;
  const row: PictureRow = { name, kind, label: labelOf(name, kind), state: stateOf(history, track), bars: [], marks: [] };
  attempts.forEach((attempt, i) => {
    const next = attempts[i + 1];
    addAttempt(row, attempt, next ? next.began : end, !next && !history.gone);
  });
  pauses(row, track, end, !history.gone && !hasEnded(history));
  return row;
}

function addAttempt(row: PictureRow, attempt: Attempt, until: number, newest: boolean): void {
  let stopped = Infinity;
  for (const o of attempt.operations) {
    if (o.what === "start") {
      start(row, o, attempt);
    } else if (o.what === "stop") {
      stopped = Math.min(stopped, o.from);
      const exited = attempt.exited;
      operation(row, o, exited !== undefined && exited > o.from ? Math.min(exited, o.to) : o.to);
    } else {
      operation(row, o, o.to);
    }
  }
  if (attempt.running !== undefined) {
    const over = Math.min(attempt.exited ?? until, stopped);
    const open = newest && attempt.exited === undefined && stopped === Infinity;
    running(row, attempt, row.kind === "main" || row.kind === "sidecar", attempt.running, over, open);
  }
  if (attempt.exited !== undefined) {
    row.marks.push({ at: attempt.exited, sign: attempt.code === 0 ? "done" : "died", text: exitWords(attempt) });
  }
  for (const p of attempt.probes) {
    const sign: Sign = p.failed ? "failed" : "passed";
    row.marks.push({ at: time(p.at), sign, text: describe(p) });
    if ((p.times ?? 1) > 1 && p.last) {
      row.marks.push({ at: time(p.last), sign, text: describe(p) });
    }
  }
}

/** start splits the operation that creates and starts a container where the runtime says it was created. */
function start(row: PictureRow, o: Operation, attempt: Attempt): void {
  const { created, running: ran } = attempt;
  const to = ran !== undefined && ran >= o.from && ran < o.to ? ran : o.to;
  let middle = to;
  if (created !== undefined && created < to) {
    middle = Math.max(created, o.from); // an earlier try may have created it
  }
  const last = middle === to;
  if (middle > o.from) {
    operation(row, { ...o, open: o.open && last, failed: o.failed && last }, middle);
  }
  if (to > middle) {
    row.bars.push({ from: middle, to, shade: "start", attempt: o.attempt, open: o.open, failed: o.failed, text: o.text });
    if (o.failed) {
      row.marks.push({ at: to, sign: "failed", text: o.text });
    }
  }
}

function operation(row: PictureRow, o: Operation, to: number): void {
  row.bars.push({
    from: o.from, to, shade: shades[o.what] ?? "leave", attempt: o.attempt, open: o.open, failed: o.failed, text: o.text,
  });
  if (o.failed) {
    row.marks.push({ at: to, sign: "failed", text: o.text });
  }
}

/** running shades the time in which something runs by how useful it is. What knows no readiness is always up. */
function running(row: PictureRow, attempt: Attempt, readiness: boolean, from: number, to: number, open: boolean): void {
  let shade: Shade = readiness && row.name !== "" ? "quiet" : "up";
  let at = from;
  const paint = (until: number, last: boolean) => {
    if (until > at) {
      row.bars.push({ from: at, to: until, shade, attempt: attempt.number, open: last && open, failed: false, text: "" });
      at = until;
    }
  };
  for (const m of readiness ? attempt.switches : []) {
    if (time(m.at) > to) {
      break;
    }
    paint(time(m.at), false);
    if (m.what === "ready") {
      shade = "serving";
    } else if (m.what === "unready" || shade === "quiet") {
      shade = "up";
    }
  }
  paint(to, true);
}

/** pauses fill the time between a failure and the next try. */
function pauses(row: PictureRow, track: Track, end: number, waits: boolean): void {
  const ends: number[] = [];
  const begins: number[] = [];
  track.attempts.forEach((attempt, i) => {
    if (attempt.exited !== undefined && track.kind !== "ephemeral" && (attempt.code !== 0 || track.kind !== "init")) {
      ends.push(attempt.exited);
    }
    for (const o of attempt.operations) {
      if (o.what === "pull" || o.what === "start") {
        begins.push(o.from);
        if (o.failed) {
          ends.push(o.to);
        }
      }
    }
    if (waits && i + 1 === track.attempts.length && attempt.waits.length > 0) {
      begins.push(end);
    }
  });
  begins.sort((a, b) => a - b);
  for (const from of ends) {
    const next = begins.find((b) => b >= from);
    if (next !== undefined && next > from) {
      row.bars.push({ from, to: next, shade: "pause", attempt: 0, open: next === end, failed: false, text: "" });
    }
  }
}

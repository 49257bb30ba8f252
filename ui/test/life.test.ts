// SPDX-License-Identifier: Apache-2.0

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Axis } from "../src/life/axis";
import { merge, time, type History, type Moment } from "../src/life/history";
import { draw, type Picture } from "../src/life/picture";
import { since, took } from "../src/life/words";

const zero = Date.parse("2026-11-29T15:00:00Z");
const at = (s: number) => new Date(zero + s * 1000).toISOString();
let seq = 0;
const m = (s: number, what: string, more: Partial<Moment> = {}): Moment => ({ seq: seq++, at: at(s), what, ...more });
const app = { container: "app" };

function history(now: number, moments: Moment[], more: Partial<History> = {}): History {
  return { namespace: "n", name: "p", uid: "u", now: at(now), containers: [{ name: "app", kind: "main" }], moments, ...more };
}

const begun = [
  m(0, "seen"), m(0, "sandbox", { edge: "begin" }), m(1, "sandbox", { edge: "end" }),
  m(1, "pull", { edge: "begin", ...app }), m(2, "pull", { edge: "end", ...app }),
  m(2, "start", { edge: "begin", ...app }), m(2.2, "created", app), m(3, "running", app), m(3.1, "start", { edge: "end", ...app }),
];

const bars = (p: Picture, row: number) => p.rows[row]!.bars.map((b) => `${b.shade} ${(b.from - zero) / 1000}-${(b.to - zero) / 1000}${b.open ? "+" : ""}${b.failed ? "!" : ""}`);

test("a start is laid out from the sandbox to readiness", () => {
  const p = draw(history(10, [...begun, m(3, "started", app), m(5, "ready", app), m(5, "ready"), m(6, "probed", { probe: "readiness", ...app })]));
  expect(bars(p, 0)).toEqual(["sandbox 0-1", "up 1-5", "serving 5-10+"]);
  expect(bars(p, 1)).toEqual(["pull 1-2", "create 2-2.2", "start 2.2-3", "up 3-5", "serving 5-10+"]);
  expect(p.rows.map((r) => r.state)).toEqual(["ready", "ready"]);
  expect(p.rows[1]!.marks).toMatchObject([{ sign: "passed", text: "readiness probe passed" }]);
});

test("a crash loop shows its back-off to now, and its exits", () => {
  const p = draw(history(20, [...begun, m(4, "exited", { code: 3, ...app }), m(4, "waiting", { text: "CrashLoopBackOff: 10s", ...app })]));
  expect(bars(p, 1)).toEqual(["pull 1-2", "create 2-2.2", "start 2.2-3", "quiet 3-4", "pause 4-20+"]);
  expect(p.rows[1]).toMatchObject({ state: "CrashLoopBackOff", marks: [{ sign: "died", text: "exit 3" }] });
});

test("a restart begins another attempt, and the back-off ends with it", () => {
  const again = { ...app, attempt: 1 };
  const p = draw(history(20, [
    ...begun, m(4, "exited", { code: 1, ...app }), m(9, "start", { edge: "begin", ...again }), m(10, "start", { edge: "end", ...again }), m(10, "running", again), m(10, "started", app),
  ]));
  expect(bars(p, 1)).toEqual(["pull 1-2", "create 2-2.2", "start 2.2-3", "quiet 3-4", "create 9-10", "up 10-20+", "pause 4-9"]);
  expect(p.rows[1]!.state).toBe("not ready, 1 restart");
});

test("a failed pull has its words, and an agent's death ends what it was at", () => {
  const p = draw(history(9, [
    m(0, "seen"), m(1, "pull", { edge: "begin", ...app }), m(2, "pull", { edge: "end", failed: true, text: "ErrImagePull: no such tag", ...app }),
    m(5, "pull", { edge: "begin", ...app }), m(6, "agent"),
  ]));
  expect(bars(p, 1)).toEqual(["pull 1-2!", "pull 5-6", "pause 2-5"]);
  expect(p.rows[1]!.marks[0]).toMatchObject({ sign: "failed", text: "ErrImagePull: no such tag" });
});

test("a deletion: preStop, stop to the exit, take-down; and the picture of a pod that is gone ends with it", () => {
  const p = draw(history(99, [
    ...begun, m(4, "deleted"), m(4, "preStop", { edge: "begin", ...app }), m(5, "preStop", { edge: "end", ...app }),
    m(5, "stop", { edge: "begin", ...app }), m(6, "exited", { code: 0, ...app }), m(6.5, "stop", { edge: "end", ...app }),
    m(7, "takeDown", { edge: "begin" }), m(8, "takeDown", { edge: "end" }), m(8, "left"),
  ], { gone: true }));
  expect(bars(p, 1).slice(3)).toEqual(["preStop 4-5", "stop 5-6", "quiet 3-5"]);
  expect(bars(p, 0)).toEqual(["sandbox 0-1", "leave 7-8", "up 1-7"]);
  expect([p.to, p.rows[0]!.state]).toEqual([zero + 8000, "gone"]);
});

test("whatever the moments are, a picture comes out of them", () => {
  const odd = [m(5, "exited", { container: "unknown", code: 1 }), { seq: 1, at: "never", what: "seen" }, m(2, "nonsense"), m(3, "stop", { edge: "end", ...app }), m(1, "folded", { times: 3 })];
  for (const moments of [[], odd, [...odd, ...begun].reverse(), null]) {
    const p = draw(history(6, moments as Moment[]));
    const axis = new Axis(p, 500);
    expect(p.rows[0]!.label).toBe("pod");
    for (const b of p.rows.flatMap((r) => r.bars)) {
      expect(axis.at(b.to)).toBeGreaterThanOrEqual(axis.at(b.from));
    }
    expect(axis.ticks(80).every((t) => t.at >= 0 && t.at <= 500)).toBe(true);
  }
});

test("a later part of a history replaces moments of the same number; another pod's takes its place", () => {
  const first = history(1, [{ seq: 0, at: at(0), what: "seen" }, { seq: 1, at: at(1), what: "probed", times: 1 }]);
  const both = merge(first, { now: at(2), moments: [{ seq: 1, at: at(1), what: "probed", times: 2 }, { seq: 2, at: at(2), what: "ready" }] });
  expect(both.moments!.map((x) => [x.seq, x.times])).toEqual([[0, undefined], [1, 2], [2, undefined]]);
  expect([both.uid, both.now]).toEqual(["u", at(2)]);
  expect(merge(first, { uid: "other", now: at(3), moments: [] }).moments).toEqual([]);
});

test("a quiet day is cut short on the axis, and the axis knows times from places", () => {
  const p = draw(history(86_400, [...begun, m(3, "started", app), m(5, "ready", app)]));
  const axis = new Axis(p, 600);
  expect(axis.cuts()).toHaveLength(1);
  expect(axis.at(zero + 5000)).toBeGreaterThan(400);
  expect(Math.abs(axis.time(axis.at(zero + 2500)) - zero - 2500)).toBeLessThan(1);
  expect(axis.ticks(80).at(-1)!.label).toBe("1d00h");
});

test("times keep what is finer than a millisecond", () => {
  expect(time("2026-11-29T15:06:53.250785391Z") % 1).toBeCloseTo(0.785, 2);
  expect(time("2026-11-29T15:06:53Z")).toBe(Date.parse("2026-11-29T15:06:53Z"));
  expect(time("2026-11-29T16:06:53.5+01:00")).toBe(Date.parse("2026-11-29T15:06:53.500Z"));
  expect(time(undefined)).toBeNaN();
});

test("durations are worded as wherry timeline words them", () => {
  expect([-1, 0.4, 47, 99.4, 333, 9990, 12_345, 90_000, 3_700_000, 90_000_000].map(took)).toEqual(["0ms", "0ms", "47ms", "99ms", "0.33s", "9.99s", "12.3s", "1m30s", "1h02m", "1d01h"]);
  expect([0, 20, 300, 1000, 1500, 90_000].map(since)).toEqual(["0s", "20ms", "0.3s", "1s", "1.5s", "1m30s"]);
});

// The histories of internal/timeline's tests, in their own words, and what `wherry timeline` draws of them.
const folder = new URL("../../internal/timeline/testdata/", import.meta.url);

function scripted(text: string): History {
  const h: History = { now: at(0), containers: [], moments: [] };
  for (const line of text.trim().split("\n")) {
    const [head, words] = line.split(/:(?: |$)(.*)/s);
    const [first, what = "", ...rest] = head!.split(" ");
    if (first === "container") {
      h.containers!.push({ kind: what, name: rest[0]! });
    } else if (first === "now") {
      h.now = at(Number(what));
    } else if (first === "gone") {
      h.gone = true;
    } else {
      const moment = m(Number(first), what, { text: words });
      for (const word of rest) {
        const [key, value] = word.split("=");
        if (word === "begin" || word === "end") {
          moment.edge = word;
        } else if (word === "failed") {
          moment.failed = true;
        } else if (key === "last") {
          moment.last = at(Number(value));
        } else if (key === "code" || key === "times") {
          moment[key] = Number(value);
        } else if (key === "probe") {
          moment.probe = value;
        } else {
          moment.container = word.split("/")[0];
          moment.attempt = Number(word.split("/")[1] ?? 0);
        }
      }
      h.moments!.push(moment);
    }
  }
  return h;
}

const scripts = readdirSync(folder).filter((f) => f.endsWith(".txtar"));

test("there are histories to compare", () => expect(scripts.length).toBeGreaterThan(5));

test.each(scripts)("rows are called, and are, as wherry timeline says: %s", (file) => {
  const parts = readFileSync(new URL(file, folder), "utf8").split(/^-- (\w+) --\n/m);
  const text = parts[parts.indexOf("text") + 1]!;
  for (const row of draw(scripted(parts[parts.indexOf("history") + 1]!)).rows) {
    const line = text.split("\n").find((l) => l.startsWith(row.label + " ") || l === row.label);
    expect(line, row.label).toBeDefined();
    // A long state is cut in text.
    expect(line!.trimEnd().endsWith(row.state) || /…$/.test(line!), `${row.label}: ${row.state}: ${line}`).toBe(true);
  }
});

// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import type { History, Moment } from "../src/life/history";
import { runsOf } from "../src/life/runs";

const zero = Date.parse("2026-11-29T15:00:00Z");
const at = (s: number) => new Date(zero + s * 1000).toISOString();
let seq = 0;
const m = (s: number, what: string, more: Partial<Moment> = {}): Moment => ({ seq: seq++, at: at(s), what, container: "app", ...more });
const run = (s: number, attempt: number, ready: number | null, exit: number | null, code = 0, text = ""): Moment[] => [
  m(s, "start", { edge: "begin", attempt }), m(s + 1, "running", { attempt }), m(s + 1, "start", { edge: "end", attempt }),
  ...(ready === null ? [] : [m(ready, "ready")]), ...(exit === null ? [] : [m(exit, "exited", { attempt, code, text })]),
];
const history = (now: number, moments: Moment[]): History => ({ now: at(now), containers: [{ name: "app", kind: "main" }, { name: "proxy", kind: "sidecar" }], moments });
const facts = (h: History) => Object.fromEntries(runsOf(h)[0]!.facts.map((f) => [f.what, [f.before, f.last, f.differs]]));

test("the last run is put beside the one before, and what differs is said", () => {
  const h = history(100, [...run(0, 0, 2, 10, 0, "Completed"), ...run(15, 1, 21, 30, 137, "OOMKilled: too much"), ...run(50, 2, 56, 60, 1, "Error")]);
  const [runs, ...none] = runsOf(h);
  expect(none).toEqual([]); // a container that ran once has nothing to be compared with
  expect([runs!.container, runs!.before, runs!.last]).toEqual(["app", 2, 3]);
  expect(facts(h)).toMatchObject({
    "waited before it": ["5.00s", "20.0s", true], "created and started in": ["1.00s", "1.00s", false], "ready after": ["5.00s", "5.00s", false],
    "ran for": ["14.0s", "9.00s", true], ended: ["exit 137 OOMKilled", "exit 1", true], "said at its end": ["too much", "", true],
  });
});

test("a run that goes on is not called different for what it has not come to yet", () => {
  const f = facts(history(20, [...run(0, 0, 2, 10, 3), ...run(15, 1, null, null)]));
  expect(f.ended).toEqual(["exit 3", "it runs", false]);
  expect(f["ran for"]).toEqual(["9.00s", "4.00s so far", false]);
  expect(f["ready after"]).toEqual(["1.00s", "", false]);
  expect(facts(history(90, [...run(0, 0, 2, 10, 3), ...run(15, 1, null, null)]))["ran for"]![2]).toBe(true);
});

test("failed probes and lost readiness are counted", () => {
  const f = facts(history(40, [...run(0, 0, 2, 10, 3), ...run(15, 1, 17, null), m(20, "probed", { attempt: 1, probe: "readiness", failed: true, times: 3 }), m(20, "unready"), m(22, "ready"), m(23, "unready")]));
  expect([f["probes that failed"], f["lost its readiness"]]).toEqual([["", "3", true], ["", "2 times", true]]);
});

test("whatever the moments are, there is a comparison or none", () => {
  for (const moments of [null, [], [m(1, "exited", { attempt: 5 }), m(0, "running", { attempt: 4 })], [m(3, "start", { edge: "end", attempt: 1 }), m(1, "nonsense", { attempt: 0 })]]) {
    expect(() => runsOf(history(5, moments as Moment[]))).not.toThrow();
  }
});

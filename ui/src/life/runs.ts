// SPDX-License-Identifier: Apache-2.0

// The last run of a container beside the one before, from what its node noted.

import { endOf, time, type History } from "./history";
import { labelOf } from "./picture";
import { exitWords, tracksOf, type Attempt } from "./tracks";
import { took } from "./words";

/** Fact is one thing of two runs, in words; "" if it was not. */
export interface Fact {
  what: string;
  before: string;
  last: string;
  differs: boolean;
}

/** Runs are two runs of a container. */
export interface Runs {
  container: string;
  label: string;
  before: number; // the number of the run before, from one on
  last: number;
  facts: Fact[];
}

/** runsOf compares the last two runs of each container that has had more than one. */
export function runsOf(history: History): Runs[] {
  const end = endOf(history);
  return tracksOf(history).flatMap(({ name, kind, attempts }) => {
    const [earlier, before, last] = [attempts[attempts.length - 3], attempts[attempts.length - 2], attempts[attempts.length - 1]];
    if (name === "" || !before || !last) {
      return [];
    }
    const facts = [...durations(before, earlier, last, end), ...ends(before, last, history)].filter((f) => f.before || f.last);
    return [{ container: name, label: labelOf(name, kind), before: before.number + 1, last: last.number + 1, facts }];
  });
}

type Measure = (a: Attempt, before: Attempt | undefined, end: number) => number;

const measures: [string, Measure][] = [
  ["waited before it", (a, before) => (before?.exited === undefined ? NaN : a.began - before.exited)],
  ["image pulled in", (a) => spent(a, "pull")],
  ["created and started in", (a) => spent(a, "start")],
  ["started after", (a) => after(a, "started")],
  ["ready after", (a) => after(a, "ready")],
  ["ran for", (a, _, end) => (a.running === undefined ? NaN : (a.exited ?? end) - a.running)],
];

function durations(before: Attempt, earlier: Attempt | undefined, last: Attempt, end: number): Fact[] {
  return measures.map(([what, measure]) => {
    const [a, b] = [measure(before, earlier, end), measure(last, before, end)];
    const goesOn = what === "ran for" && last.exited === undefined && last.running !== undefined;
    // What still runs may come to be as long.
    const differs = otherwise(a, b) && !(goesOn && b < a);
    return { what, before: words(a), last: words(b) + (goesOn && words(b) ? " so far" : ""), differs };
  });
}

/** otherwise: one is half as long again as the other, and by more than a blink; or only one of them was. */
function otherwise(a: number, b: number): boolean {
  if (Number.isNaN(a) || Number.isNaN(b)) {
    return false; // the history may have been cut
  }
  const [less, more] = [Math.min(a, b), Math.max(a, b)];
  return more - less > 200 && more > 1.5 * less;
}

function ends(before: Attempt, last: Attempt, history: History): Fact[] {
  const fact = (what: string, of: (a: Attempt) => string): Fact => {
    const [a, b] = [of(before), of(last)];
    return { what, before: a, last: b, differs: a !== b };
  };
  const end = fact("ended", (a) => (a.exited !== undefined ? exitWords(a) : a.running !== undefined ? (history.gone ? "not noted" : "it runs") : "it has not run"));
  const said = fact("said at its end", (a) => a.reason.split(":").slice(1).join(":").trim().slice(0, 300));
  return [
    { ...end, differs: end.differs && last.exited !== undefined }, said,
    fact("probes that failed", (a) => count(a.probes.filter((p) => p.failed).reduce((n, p) => n + (p.times ?? 1), 0))),
    fact("lost its readiness", (a) => times(lost(a))),
  ];
}

function lost(a: Attempt): number {
  let [ready, n] = [false, 0];
  for (const s of a.switches) {
    n += ready && s.what === "unready" ? 1 : 0;
    ready = s.what === "ready" || (ready && s.what !== "unready");
  }
  return n;
}

function count(n: number): string {
  return n > 0 ? String(n) : "";
}

function times(n: number): string {
  return n > 0 ? `${n} ${n === 1 ? "time" : "times"}` : "";
}

function spent(a: Attempt, what: string): number {
  const all = a.operations.filter((o) => o.what === what);
  return all.length > 0 ? all.reduce((sum, o) => sum + o.to - o.from, 0) : NaN;
}

function after(a: Attempt, what: string): number {
  const m = a.switches.find((s) => s.what === what && (a.running === undefined || time(s.at) >= a.running));
  return m && a.running !== undefined ? time(m.at) - a.running : NaN;
}

function words(ms: number): string {
  return Number.isNaN(ms) ? "" : took(ms);
}

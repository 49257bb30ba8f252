// SPDX-License-Identifier: Apache-2.0

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Collector, every, everyUnseen } from "../src/machine/collector";

let asked: string[] = [];
let page = { hidden: false };
let refuse = "";

const summary = { node: { memory: { workingSetBytes: 5 }, fs: { usedBytes: 1, capacityBytes: 2 } }, pods: [] };
const metrics = { items: [{ metadata: { name: "vm" }, usage: { cpu: "250m", memory: "1Ki" } }] };

beforeEach(() => {
  [asked, page, refuse] = [[], { hidden: false }, ""];
  vi.useFakeTimers();
  vi.stubGlobal("document", page);
  vi.stubGlobal("fetch", async (path: string) => {
    const what = path.includes("/stats/summary") ? "summary" : "metrics";
    asked.push(what);
    return what === refuse ? new Response(JSON.stringify({ message: "nodes is forbidden" }), { status: 403 }) : new Response(JSON.stringify(what === "summary" ? summary : metrics));
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const times = (what: string) => asked.filter((a) => a === what).length;

// UI-01: nothing is asked before somebody looks at nodes, nor after the session is over; what is remembered is remembered in between.
test("figures are asked for from when they are first looked at, and less while the page is not seen", async () => {
  const collector = new Collector();
  let told = 0;
  await vi.advanceTimersByTimeAsync(every);
  expect(asked).toEqual([]);
  const leave = collector.follow(["vm"], () => told++);
  await vi.advanceTimersByTimeAsync(every);
  expect([times("summary"), times("metrics"), told, collector.samplesOf("vm").length]).toEqual([2, 2, 2, 2]);
  expect(collector.usage.get("vm")).toEqual({ cpu: 0.25, memory: 1024, disk: { used: 1, capacity: 2 } });
  leave();
  await vi.advanceTimersByTimeAsync(every);
  expect([times("summary"), times("metrics"), told]).toEqual([3, 2, 2]);
  page.hidden = true;
  await vi.advanceTimersByTimeAsync(2 * everyUnseen);
  expect(times("summary")).toBe(5);
  page.hidden = false;
  collector.clear();
  await vi.advanceTimersByTimeAsync(10 * every);
  expect([times("summary"), collector.samplesOf("vm").length, collector.usage.size]).toEqual([5, 0, 0]);
});

// UI-02
test("who may not ask a node is told so in the server's words, and not asked again until the view is opened anew", async () => {
  refuse = "summary";
  const collector = new Collector();
  const leave = collector.follow(["vm"], () => undefined);
  await vi.advanceTimersByTimeAsync(3 * every);
  expect([times("summary"), times("metrics"), collector.refusedOf("vm")]).toEqual([1, 4, "nodes is forbidden"]);
  expect(collector.usage.get("vm")).toMatchObject({ cpu: 0.25, disk: undefined });
  leave();
  refuse = "";
  await vi.advanceTimersByTimeAsync(every);
  collector.follow(["vm"], () => undefined);
  await vi.advanceTimersByTimeAsync(every);
  expect([collector.refusedOf("vm"), times("summary") > 1]).toEqual(["", true]);
  collector.clear();
});

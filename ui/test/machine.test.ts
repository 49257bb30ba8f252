// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import { hour, largest, linesOf, read, withSample, type Figures, type Sample, type Summary } from "../src/machine/history";

const at = (second: number) => new Date(Date.UTC(2026, 10, 29) + second * 1000).toISOString();
const summary = (second: number, node: number, pods: Record<string, number>): Summary => ({
  node: { cpu: { time: at(second), usageCoreNanoSeconds: node * 1e9 }, memory: { workingSetBytes: 100 }, fs: { usedBytes: 7, capacityBytes: 9 } },
  pods: Object.entries(pods).map(([name, used]) => ({
    podRef: { name, namespace: "n", uid: name }, cpu: { time: at(second), usageCoreNanoSeconds: used * 1e9, usageNanoCores: 5e8 }, memory: { workingSetBytes: used }, "ephemeral-storage": { usedBytes: 3 },
  })),
});

test("CPU is what was used between two summaries, or what the node says of it", () => {
  const one = read(summary(0, 10, { a: 1 }), new Map(), 0);
  expect(one.sample.node).toEqual({ cpu: NaN, memory: 100, disk: 7 });
  expect(one.sample.pods.get("n/a")).toEqual({ cpu: 0.5, memory: 1, disk: 3 });
  const two = read(summary(10, 25, { a: 3, b: 1 }), one.counters, 10_000);
  expect([two.sample.node.cpu, two.sample.pods.get("n/a")!.cpu, two.sample.pods.get("n/b")!.cpu]).toEqual([1.5, 0.2, 0.5]);
  // a pod that was made anew begins at nothing; figures that have not been renewed say nothing new
  const three = read(summary(10, 25, { a: 1 }), two.counters, 20_000);
  expect([three.sample.node.cpu, three.sample.pods.get("n/a")!.cpu]).toEqual([NaN, 0.5]);
  expect(read({}, new Map(), 0).sample).toEqual({ at: 0, node: { cpu: NaN, memory: NaN, disk: NaN }, pods: new Map() });
});

// UI-10: an hour of thousands of pods is an hour of those that matter.
test("of many pods the largest are remembered", () => {
  const many = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`p${i}`, i]));
  const { sample, counters } = read(summary(0, 1, many), new Map(), 0);
  expect(sample.pods.size).toBeLessThanOrEqual(60);
  expect(sample.pods.has("n/p1999")).toBe(true);
  expect(counters.size).toBe(2001);
});

const sample = (when: number, pods: Record<string, number>): Sample => {
  const figures = (n: number): Figures => ({ cpu: n, memory: NaN, disk: NaN });
  return { at: when, node: figures(9), pods: new Map(Object.entries(pods).map(([name, n]) => [name, figures(n)])) };
};

test("an hour is kept, and lines have gaps where nobody asked or a pod was not there", () => {
  let samples: Sample[] = [];
  for (let i = 0; i <= 400; i++) {
    samples = withSample(samples, sample(i * 10_000, { a: 1, b: i < 390 ? 0.5 : 0 }));
  }
  expect(samples).toHaveLength(360);
  expect(samples.at(-1)!.at - samples[0]!.at).toBeLessThan(hour);
  expect(withSample(samples, sample(4_000_000, {})).filter((s) => s.at === 4_000_000)).toHaveLength(1);
  expect(largest(samples, "cpu", 1)).toEqual(["a"]);
  expect(largest(samples, "memory", 5)).toEqual([]);
  const few = [sample(0, { a: 1 }), sample(10_000, { b: 2 }), sample(200_000, { a: 3 })];
  expect(linesOf(few, "cpu", ["a", "b"], 60_000)).toEqual([[0, 10, 105, 200], [9, 9, null, 9], [1, null, null, 3], [null, 2, null, null]]);
});

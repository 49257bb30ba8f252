// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import type { ContainerStatus, Pod } from "../src/api/types";
import { age } from "../src/pods/age";
import { rowOf } from "../src/pods/status";

const run = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({ name, ready: true, state: { running: {} }, ...more });
const wait = (name: string, reason?: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({ name, state: { waiting: { reason } }, ...more });
const end = (name: string, exitCode: number, reason?: string, signal?: number): ContainerStatus => ({ name, state: { terminated: { exitCode, reason, signal } } });

function pod(phase: string, main: ContainerStatus[], init: ContainerStatus[] = [], more: Partial<Pod> & { sidecars?: string[]; initialized?: boolean; ready?: boolean } = {}): Pod {
  return {
    metadata: { name: "p", namespace: "n", ...more.metadata },
    spec: {
      nodeName: "vm",
      initContainers: init.map((c) => ({ name: c.name, restartPolicy: more.sidecars?.includes(c.name) ? "Always" : undefined })),
      containers: main.map((c) => ({ name: c.name })),
      ...more.spec,
    },
    status: {
      phase, containerStatuses: main, initContainerStatuses: init,
      conditions: [
        { type: "Initialized", status: more.initialized ? "True" : "False" },
        { type: "Ready", status: more.ready ? "True" : "False" },
      ],
      ...more.status,
    },
  };
}

const gone = { name: "p", namespace: "n", deletionTimestamp: "2026-01-01T00:00:00Z" };

// What kubectl's printer (pkg/printers/internalversion) says of these.
const cases: [string, Pod, string, string, string][] = [
  ["runs", pod("Running", [run("a"), run("b")], [], { ready: true }), "2/2", "Running", "good"],
  ["one is not ready", pod("Running", [run("a"), run("b", { ready: false })]), "1/2", "Running", "busy"],
  ["just made", pod("Pending", [wait("a", "ContainerCreating")]), "0/1", "ContainerCreating", "busy"],
  ["no status yet", { metadata: { name: "p" }, spec: { containers: [{ name: "a" }] }, status: { phase: "Pending" } }, "0/1", "Pending", "busy"],
  ["crash loop", pod("Running", [wait("a", "CrashLoopBackOff")]), "0/1", "CrashLoopBackOff", "bad"],
  ["image is not there", pod("Pending", [wait("a", "ImagePullBackOff")]), "0/1", "ImagePullBackOff", "bad"],
  ["completed", pod("Succeeded", [end("a", 0, "Completed")]), "0/1", "Completed", "done"],
  ["failed", pod("Failed", [end("a", 1, "Error")]), "0/1", "Error", "bad"],
  ["failed without a reason", pod("Failed", [end("a", 3)]), "0/1", "ExitCode:3", "bad"],
  ["killed without a reason", pod("Failed", [end("a", 137, "", 9)]), "0/1", "Signal:9", "bad"],
  ["one completed, one runs", pod("Running", [end("a", 0, "Completed"), run("b")], [], { ready: true }), "1/2", "Running", "busy"],
  ["one completed, one runs, not ready", pod("Running", [end("a", 0, "Completed"), run("b")]), "1/2", "NotReady", "busy"],
  ["first failed, last completed", pod("Failed", [end("a", 2, "Error"), end("b", 0, "Completed")]), "0/2", "Error", "bad"],
  ["first completed, last failed", pod("Failed", [end("a", 0, "Completed"), end("b", 2, "Error")]), "0/2", "Error", "bad"],
  ["evicted", pod("Failed", [], [], { status: { phase: "Failed", reason: "Evicted" } }), "0/0", "Evicted", "bad"],
  ["first init runs", pod("Pending", [wait("a")], [run("i"), wait("j", "PodInitializing")]), "0/1", "Init:0/2", "busy"],
  ["second init runs", pod("Pending", [wait("a")], [end("i", 0), run("j")]), "0/1", "Init:1/2", "busy"],
  ["init failed", pod("Pending", [wait("a")], [end("i", 1, "Error")]), "0/1", "Init:Error", "bad"],
  ["init failed without a reason", pod("Pending", [wait("a")], [end("i", 4)]), "0/1", "Init:ExitCode:4", "bad"],
  ["init killed", pod("Pending", [wait("a")], [end("i", 137, "", 9)]), "0/1", "Init:Signal:9", "bad"],
  ["init crash loop", pod("Pending", [wait("a")], [wait("i", "CrashLoopBackOff")]), "0/1", "Init:CrashLoopBackOff", "bad"],
  ["sidecar has not started", pod("Pending", [wait("a")], [run("s", { started: false, ready: false })], { sidecars: ["s"] }), "0/2", "Init:0/1", "busy"],
  ["sidecar started, init runs", pod("Pending", [wait("a")], [run("s", { started: true }), run("i")], { sidecars: ["s"] }), "1/2", "Init:1/2", "busy"],
  ["sidecar and main run", pod("Running", [run("a")], [run("s", { started: true })], { sidecars: ["s"], initialized: true, ready: true }), "2/2", "Running", "good"],
  ["init ran again", pod("Running", [run("a")], [wait("i", "CrashLoopBackOff")], { initialized: true, ready: true }), "1/1", "Init:CrashLoopBackOff", "bad"],
  ["deleted", pod("Running", [run("a")], [], { ready: true, metadata: gone }), "1/1", "Terminating", "busy"],
  ["deleted after its end", pod("Succeeded", [end("a", 0, "Completed")], [], { metadata: gone }), "0/1", "Completed", "done"],
  ["deleted, node lost", pod("Running", [run("a")], [], { metadata: gone, status: { phase: "Running", reason: "NodeLost" } }), "1/1", "Unknown", "bad"],
  ["gated", pod("Pending", [], [], { status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }] } }), "0/0", "SchedulingGated", "busy"],
];

test.each(cases)("rowOf: %s", (_, of, ready, status, tone) => {
  const row = rowOf(of);
  expect([`${row.ready}/${row.containers}`, row.status, row.tone]).toEqual([ready, status, tone]);
});

test("restarts are those of mains and sidecars, and those of inits while it is at them", () => {
  const last = { lastState: { terminated: { exitCode: 1, finishedAt: "2026-01-02T00:00:00Z" } } };
  const both = pod("Running", [run("a", { restartCount: 2, ...last })], [run("s", { started: true, restartCount: 3 }), end("i", 0)], { sidecars: ["s"], initialized: true });
  both.status!.initContainerStatuses![1]!.restartCount = 5;
  expect(rowOf(both)).toMatchObject({ restarts: 5, lastRestart: "2026-01-02T00:00:00Z" });
  expect(rowOf(pod("Pending", [wait("a", undefined, { restartCount: 9 })], [wait("i", "CrashLoopBackOff", { restartCount: 4 })])).restarts).toBe(4);
});

test("a word for what it waits for", () => {
  const words = (p: Pod) => rowOf(p).waitsFor;
  expect(words(pod("Running", [run("a")], [], { ready: true }))).toBe("");
  expect(words(pod("Pending", [wait("a")], [run("db"), wait("m")]))).toBe("init container db");
  expect(words(pod("Running", [wait("a", "CrashLoopBackOff")]))).toBe("the next try of a");
  expect(words(pod("Pending", [wait("a", "ErrImageNeverPull")]))).toBe("the image of a");
  expect(words(pod("Running", [run("a", { ready: false })]))).toBe("the readiness of a");
  expect(words(pod("Pending", [wait("a")], [run("s", { started: false })], { sidecars: ["s"] }))).toBe("the start of sidecar s");
  expect(words(pod("Pending", [], [], { spec: { nodeName: undefined }, status: { phase: "Pending", conditions: [{ type: "PodScheduled", status: "False" }] } }))).toBe("a node that fits");
});

test("ages are worded as kubectl words them", () => {
  const [s, m, h, d] = [1000, 60_000, 3_600_000, 86_400_000];
  const words: [number, string][] = [
    [0, "0s"], [119 * s, "119s"], [120 * s, "2m"], [3 * m + 20 * s, "3m20s"], [10 * m + 5 * s, "10m"], [179 * m, "179m"], [3 * h, "3h"], [5 * h + 12 * m, "5h12m"],
    [8 * h + m, "8h"], [47 * h, "47h"], [48 * h, "2d"], [50 * h, "2d2h"], [9 * d, "9d"], [800 * d, "2y70d"], [3000 * d, "8y"], [-5 * s, "<invalid>"],
  ];
  expect(words.map(([ms]) => age(ms))).toEqual(words.map(([, word]) => word));
});

// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import type { Pod } from "../src/api/types";
import { bytes, quantity } from "../src/machine/quantity";
import { flatten, serviceTree, workloadTree, type TreeNode, type Workload } from "../src/workloads/tree";

const of = (uid?: string) => (uid ? [{ kind: "x", name: "x", controller: true, uid }] : undefined);
const pod = (name: string, owner?: string, ready = true): Pod => ({
  metadata: { name, namespace: "n", uid: name, ownerReferences: of(owner) },
  spec: { nodeName: "vm", containers: [{ name: "a" }] },
  status: { phase: "Running", containerStatuses: [{ name: "a", ready, state: { running: {} } }] },
});
const set = (name: string, replicas: number, ready: number, owner?: string): Workload => ({
  metadata: { name, namespace: "n", uid: name, ownerReferences: of(owner) }, spec: { replicas }, status: { readyReplicas: ready },
});
const lines = (nodes: TreeNode[]) => flatten(nodes, new Set()).map((l) => `${" ".repeat(l.level - 1)}${l.node.kind} ${l.node.name}: ${l.node.state}`);

test("pods stand below what has made them, and sets that a rollout has left are not shown", () => {
  const nodes = workloadTree(
    [["Deployment", set("web", 2, 1)], ["ReplicaSet", set("web-new", 2, 1, "web")], ["ReplicaSet", set("web-old", 0, 0, "web")]],
    [pod("web-new-a", "web-new"), pod("web-new-b", "web-new", false), pod("alone"), pod("orphan", "unseen")],
  );
  expect(lines(nodes)).toEqual([
    "Pod alone: Running", "Pod orphan: Running", "Deployment web: 1/2 ready", " ReplicaSet web-new: 1/2 ready", "  Pod web-new-a: Running", "  Pod web-new-b: Running",
  ]);
  expect(flatten(nodes, new Set(["Deployment/n/web"])).length).toBe(3);
});

test("jobs are done or have failed, with the words for it", () => {
  const job = (type: string): Workload => ({ metadata: { name: type, namespace: "n" }, status: { succeeded: 1, conditions: [{ type, status: "True", message: "words" }] } });
  const [complete, failed] = workloadTree([["Job", job("Complete")], ["Job", job("Failed")]], []);
  expect([complete!.tone, failed!.tone, failed!.why]).toEqual(["done", "bad", "words"]);
});

test("a service says what of it is not ready and why", () => {
  const service = (name: string) => ({ metadata: { name, namespace: "n" }, spec: { selector: { app: name }, clusterIP: "10.0.0.1", ports: [{ port: 80 }] } });
  const slice = {
    metadata: { name: "s", namespace: "n", labels: { "kubernetes.io/service-name": "web" } },
    endpoints: [
      { addresses: ["10.1.0.1"], conditions: { ready: true }, targetRef: { kind: "Pod", name: "a" } },
      { addresses: ["10.1.0.2"], conditions: { ready: false }, targetRef: { kind: "Pod", name: "b" } },
    ],
  };
  const pods = new Map([["n/a", pod("a")], ["n/b", pod("b", undefined, false)]]);
  const [nobody, web] = serviceTree([service("web"), service("nobody")], [slice, { ...slice, metadata: { name: "other", namespace: "n" } }], pods);
  expect([nobody!.state, nobody!.why]).toEqual(["no endpoints", "no pod with an address has the labels app=nobody"]);
  expect([web!.state, web!.children.map((c) => c.why)]).toEqual(["1/2 ready", ["10.1.0.1", "10.1.0.2 · Running, waits for the readiness of a"]]);
});

test("quantities", () => {
  expect(["250m", "1889951232n", "3328696Ki", "2", "1.5e3", "4Gi"].map(quantity)).toEqual([0.25, 1.889951232, 3408584704, 2, 1500, 4294967296]);
  expect(["", "x", "1Q", undefined].map(quantity)).toEqual([NaN, NaN, NaN, NaN]);
  expect([0, 1023, 1024, 3408584704].map(bytes)).toEqual(["0 B", "1023 B", "1.0 KiB", "3.2 GiB"]);
});

// SPDX-License-Identifier: Apache-2.0

// What belongs to what: Deployment -> ReplicaSet -> pods, CronJob -> Job -> pods; Service -> endpoints.

import type { KubeObject, Pod } from "../api/types";
import { rowOf, type Tone } from "../pods/status";

/** Workload is the part that Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs have in common. */
export interface Workload extends KubeObject {
  spec?: { replicas?: number; completions?: number; suspend?: boolean; schedule?: string; paused?: boolean };
  status?: {
    replicas?: number; readyReplicas?: number; updatedReplicas?: number; desiredNumberScheduled?: number; numberReady?: number;
    succeeded?: number; failed?: number; active?: number | unknown[]; conditions?: { type: string; status: string; reason?: string; message?: string }[];
  };
}

export interface Service extends KubeObject {
  spec?: { selector?: Record<string, string>; type?: string; clusterIP?: string; externalName?: string; ports?: { port: number; protocol?: string; name?: string }[] };
}

export interface EndpointSlice extends KubeObject {
  endpoints?: { addresses?: string[]; conditions?: { ready?: boolean; serving?: boolean; terminating?: boolean }; targetRef?: { kind?: string; name?: string } }[] | null;
}

/** Node is one of a tree, with what is below it. */
export interface TreeNode {
  key: string;
  kind: string;
  name: string;
  namespace: string;
  state: string;
  tone: Tone;
  why: string; // what is not well, in words
  pod?: Pod;
  children: TreeNode[];
}

/** workloadTree puts objects below their owners. What has no owner here is a root; sets without pods are left out. */
export function workloadTree(workloads: readonly [kind: string, object: Workload][], pods: readonly Pod[]): TreeNode[] {
  const byUid = new Map<string, TreeNode>();
  const all: { node: TreeNode; object: KubeObject }[] = [];
  for (const [kind, object] of workloads) {
    const node = nodeOf(kind, object, ...workloadState(kind, object));
    all.push({ node, object });
    if (object.metadata.uid) {
      byUid.set(object.metadata.uid, node);
    }
  }
  for (const pod of pods) {
    all.push({ node: podNode(pod), object: pod });
  }
  const roots: TreeNode[] = [];
  for (const { node, object } of all) {
    const owner = object.metadata.ownerReferences?.find((o) => o.controller)?.uid;
    const parent = owner ? byUid.get(owner) : undefined;
    (parent && parent !== node ? parent.children : roots).push(node);
  }
  return sorted(roots.filter((n) => !idle(n)));
}

/** idle sets are those that a rollout has left behind. */
function idle(node: TreeNode): boolean {
  node.children = node.children.filter((c) => !idle(c));
  return node.kind === "ReplicaSet" && node.children.length === 0 && node.state === "0/0 ready";
}

function sorted(nodes: TreeNode[]): TreeNode[] {
  nodes.forEach((n) => sorted(n.children));
  return nodes.sort((a, b) => (a.namespace + "/" + a.name < b.namespace + "/" + b.name ? -1 : 1));
}

function nodeOf(kind: string, object: KubeObject, state: string, tone: Tone, why: string): TreeNode {
  const { namespace = "", name } = object.metadata;
  return { key: `${kind}/${namespace}/${name}`, kind, name, namespace, state, tone, why, children: [] };
}

function podNode(pod: Pod): TreeNode {
  const row = rowOf(pod);
  return { ...nodeOf("Pod", pod, row.status, row.tone, row.waitsFor && `waits for ${row.waitsFor}`), pod };
}

function workloadState(kind: string, { spec = {}, status = {} }: Workload): [string, Tone, string] {
  const bad = status.conditions?.find((c) => (c.type === "ReplicaFailure" || c.type === "Failed") && c.status === "True") ??
    status.conditions?.find((c) => (c.type === "Progressing" || c.type === "Available") && c.status === "False");
  const why = bad ? bad.message ?? bad.reason ?? "" : "";
  if (kind === "CronJob") {
    return [spec.suspend ? "suspended" : spec.schedule ?? "", "idle", ""];
  }
  if (kind === "Job") {
    const done = `${status.succeeded ?? 0}/${spec.completions ?? 1} completed`;
    const complete = status.conditions?.some((c) => c.type === "Complete" && c.status === "True");
    return [done, bad ? "bad" : complete ? "done" : "busy", why];
  }
  const wanted = kind === "DaemonSet" ? status.desiredNumberScheduled ?? 0 : spec.replicas ?? 1;
  const ready = (kind === "DaemonSet" ? status.numberReady : status.readyReplicas) ?? 0;
  return [`${ready}/${wanted} ready`, ready >= wanted ? (wanted === 0 ? "idle" : "good") : bad ? "bad" : "busy", why];
}

/** serviceTree puts endpoints below their services, each with its pod, and says what is not ready and why. */
export function serviceTree(services: readonly Service[], slices: readonly EndpointSlice[], pods: ReadonlyMap<string, Pod>): TreeNode[] {
  return sorted(services.map((service) => {
    const { namespace = "", name } = service.metadata;
    const own = slices.filter((s) => s.metadata.namespace === namespace && s.metadata.labels?.["kubernetes.io/service-name"] === name);
    const endpoints = own.flatMap((s) => s.endpoints ?? []);
    const children = endpoints.map((e, i): TreeNode => {
      const pod = e.targetRef?.kind === "Pod" ? pods.get(`${namespace}/${e.targetRef.name}`) : undefined;
      const row = pod && rowOf(pod);
      const ready = e.conditions?.ready !== false;
      const where = (e.addresses ?? []).join(", ");
      return {
        key: `Endpoint/${namespace}/${name}/${where}/${e.targetRef?.name ?? i}`, kind: "Endpoint", name: e.targetRef?.name ?? where, namespace, pod, children: [],
        state: ready ? "ready" : e.conditions?.terminating ? "terminating" : "not ready", tone: ready ? "good" : "busy",
        why: [where, !ready && row ? `${row.status}${row.waitsFor ? `, waits for ${row.waitsFor}` : ""}` : ""].filter(Boolean).join(" · "),
      };
    });
    const ready = children.filter((c) => c.state === "ready").length;
    return { ...nodeOf("Service", service, ...serviceState(service, ready, children.length)), children };
  }));
}

function serviceState(service: Service, ready: number, all: number): [string, Tone, string] {
  const { spec = {} } = service;
  const ports = (spec.ports ?? []).map((p) => `${p.port}/${p.protocol ?? "TCP"}`).join(" ");
  if (spec.externalName) {
    return ["another name", "idle", spec.externalName];
  }
  if (all === 0) {
    const selector = Object.entries(spec.selector ?? {}).map(([k, v]) => `${k}=${v}`).join(",");
    return ["no endpoints", "bad", selector ? `no pod with an address has the labels ${selector}` : "it has no selector, and nobody has made endpoints for it"];
  }
  return [`${ready}/${all} ready`, ready === all ? "good" : ready === 0 ? "bad" : "busy", `${spec.clusterIP ?? ""} ${ports}`.trim()];
}

/** Flat is a line of a tree as it is shown. */
export interface Flat {
  node: TreeNode;
  level: number;
  open: boolean;
}

/** flatten lists the lines of trees, without what is below those that are closed. */
export function flatten(nodes: readonly TreeNode[], closed: ReadonlySet<string>, level = 1): Flat[] {
  return nodes.flatMap((node) => {
    const open = node.children.length > 0 && !closed.has(node.key);
    return [{ node, level, open }, ...(open ? flatten(node.children, closed, level + 1) : [])];
  });
}

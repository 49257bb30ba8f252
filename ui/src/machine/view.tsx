// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useState } from "preact/hooks";
import { kube } from "../api/client";
import { useList } from "../api/store";
import type { Condition, KubeObject } from "../api/types";
import { Command } from "../frame/command";
import { Page } from "../frame/context";
import { useNow } from "../frame/clock";
import { Refused } from "../frame/notice";
import { ageOf } from "../pods/age";
import { bytes, quantity } from "./quantity";

interface Node extends KubeObject {
  spec?: { unschedulable?: boolean; taints?: { key: string; effect: string }[] };
  status?: {
    allocatable?: Record<string, string>; conditions?: Condition[]; images?: unknown[]; addresses?: { type: string; address: string }[];
    nodeInfo?: { kubeletVersion?: string; osImage?: string; kernelVersion?: string; containerRuntimeVersion?: string; architecture?: string };
  };
}

interface Usage {
  cpu: number; // cores
  memory: number; // bytes
  disk?: { used: number; capacity: number };
}

const every = 10_000;
const patience = 30_000;

/** useUsage asks for the figures of nodes while they are looked at: they have no watch. */
function useUsage(names: string[]): { usage: Map<string, Usage>; problem: string } {
  const [state, set] = useState({ usage: new Map<string, Usage>(), problem: "" });
  const key = names.join();
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const ask = async () => {
      try {
        if (!document.hidden && names.length > 0) {
          set({ usage: await figures(names, AbortSignal.any([stop.signal, AbortSignal.timeout(patience)])), problem: "" });
        }
      } catch (error) {
        if (!stop.signal.aborted) {
          set((s) => ({ ...s, problem: error instanceof Error ? error.message : String(error) }));
        }
      }
      if (!stop.signal.aborted) {
        timer = setTimeout(ask, every); // not before: a slow server would have ever more to answer
      }
    };
    void ask();
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return state;
}

interface Metrics {
  items?: { metadata: { name: string }; usage?: { cpu?: string; memory?: string } }[];
}

interface Summary {
  node?: { fs?: { usedBytes?: number; capacityBytes?: number } };
}

async function figures(names: string[], signal: AbortSignal): Promise<Map<string, Usage>> {
  const metrics = await kube<Metrics>("/apis/metrics.k8s.io/v1beta1/nodes", { signal });
  const out = new Map((metrics.items ?? []).map((i): [string, Usage] => [i.metadata.name, { cpu: quantity(i.usage?.cpu), memory: quantity(i.usage?.memory) }]));
  await Promise.all(names.map(async (name) => {
    // It takes the right to ask nodes themselves; without it there is no figure of the disk.
    const summary = await kube<Summary>(`/api/v1/nodes/${encodeURIComponent(name)}/proxy/stats/summary`, { signal }).catch(() => undefined);
    const fs = summary?.node?.fs;
    const usage = out.get(name);
    if (usage && fs?.capacityBytes) {
      usage.disk = { used: fs.usedBytes ?? 0, capacity: fs.capacityBytes };
    }
  }));
  return out;
}

/** MachineView shows nodes: how they are, and how much of them is in use. */
export function MachineView() {
  const { stores } = useContext(Page);
  const { items, problem, loaded } = useList<Node>(stores, { path: "/api/v1/nodes" });
  const nodes = [...items.values()];
  const { usage, problem: noFigures } = useUsage(nodes.map((n) => n.metadata.name));
  useEffect(() => {
    document.title = "Nodes · Wherry";
  }, []);
  if (problem) {
    return <Refused problem={problem} what="The server does not show nodes" />;
  }
  return (
    <section class="pods" aria-label="Nodes">
      <div class="bar">
        <h1>Nodes</h1>
        {noFigures && <span class="dim">No figures: {noFigures}</span>}
        <span class="fill" />
        <Command words={["wherry", "kubectl", "top", "nodes"]} />
      </div>
      <div class="overview">
        {nodes.map((node) => <NodeCard key={node.metadata.name} node={node} usage={usage.get(node.metadata.name)} />)}
        {loaded && nodes.length === 0 && <p class="dim">There are no nodes.</p>}
      </div>
    </section>
  );
}

function NodeCard({ node, usage }: { node: Node; usage?: Usage }) {
  const now = useNow();
  const { allocatable = {}, conditions = [], nodeInfo = {} } = node.status ?? {};
  const ready = conditions.find((c) => c.type === "Ready");
  const pressure = conditions.filter((c) => c.type !== "Ready" && c.status === "True");
  const [cpu, memory] = [quantity(allocatable["cpu"]), quantity(allocatable["memory"])];
  return (
    <section class="card" aria-label={`Node ${node.metadata.name}`}>
      <div class="card-head">
        <h2>{node.metadata.name}</h2>
        <span class={`status tone-${ready?.status === "True" ? "good" : "bad"}`}>{ready?.status === "True" ? "Ready" : "NotReady"}</span>
        {node.spec?.unschedulable && <span class="tone-busy">takes no new pods</span>}
        {pressure.map((c) => <span key={c.type} class="status tone-bad" title={c.message}>{c.type}</span>)}
        <span class="dim">{ageOf(node.metadata.creationTimestamp, now)}</span>
        <span class="fill" />
        <Command words={["wherry", "kubectl", "describe", "node", node.metadata.name]} />
      </div>
      {ready?.status !== "True" && ready?.message && <p class="wrap">{ready.message}</p>}
      <div class="gauges">
        <Gauge name="CPU" part={usage?.cpu} whole={cpu} words={(n) => `${n.toFixed(2)} cores`} />
        <Gauge name="Memory" part={usage?.memory} whole={memory} words={bytes} />
        <Gauge name="Disk" part={usage?.disk?.used} whole={usage?.disk?.capacity ?? NaN} words={bytes} />
      </div>
      <p class="dim">
        {[nodeInfo.osImage, nodeInfo.kernelVersion, nodeInfo.architecture, nodeInfo.containerRuntimeVersion, nodeInfo.kubeletVersion,
          `${allocatable["pods"] ?? "?"} pods at most`, `${node.status?.images?.length ?? 0} images`].filter(Boolean).join(" · ")}
      </p>
    </section>
  );
}

function Gauge({ name, part, whole, words }: { name: string; part?: number; whole: number; words: (n: number) => string }) {
  if (part === undefined || Number.isNaN(part) || Number.isNaN(whole)) {
    return null;
  }
  return (
    <div class="gauge">
      <span>{name}</span>
      <meter min={0} max={whole} high={whole * 0.9} value={part} aria-label={name} />
      <span class="dim">{words(part)} of {words(whole)}</span>
    </div>
  );
}

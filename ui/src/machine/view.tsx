// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useState } from "preact/hooks";
import { useList } from "../api/store";
import type { Condition, KubeObject } from "../api/types";
import { Command } from "../frame/command";
import { Page } from "../frame/context";
import { useNow } from "../frame/clock";
import { Refused } from "../frame/notice";
import { ageOf } from "../pods/age";
import { Charts } from "./charts";
import type { Collector, Usage } from "./collector";
import type { Sample } from "./history";
import { bytes, quantity } from "./quantity";

interface Node extends KubeObject {
  spec?: { unschedulable?: boolean; taints?: { key: string; effect: string }[] };
  status?: {
    allocatable?: Record<string, string>; conditions?: Condition[]; images?: unknown[]; addresses?: { type: string; address: string }[];
    nodeInfo?: { kubeletVersion?: string; osImage?: string; kernelVersion?: string; containerRuntimeVersion?: string; architecture?: string };
  };
}

/** useFigures asks for the figures of nodes, which have no watch, from now on. */
function useFigures(names: string[]): Collector {
  const { figures } = useContext(Page);
  const [, redraw] = useState(0);
  const key = names.join();
  useEffect(() => (names.length > 0 ? figures.follow(names, () => redraw((n) => n + 1)) : undefined), [figures, key]);
  return figures;
}

const few = 3; // nodes whose charts are shown unasked

/** MachineView shows nodes: how they are, and how much of them is in use. */
export function MachineView() {
  const { stores } = useContext(Page);
  const { items, problem, loaded } = useList<Node>(stores, { path: "/api/v1/nodes" });
  const nodes = [...items.values()];
  const figures = useFigures(nodes.map((n) => n.metadata.name));
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
        {figures.problem && <span class="dim">No figures: {figures.problem}</span>}
        <span class="fill" />
        <Command words={["wherry", "kubectl", "top", "nodes"]} />
      </div>
      <div class="overview">
        {nodes.map((node) => (
          <NodeCard key={node.metadata.name} node={node} usage={figures.usage.get(node.metadata.name)} samples={figures.samplesOf(node.metadata.name)}
            refused={figures.refusedOf(node.metadata.name)} charted={nodes.length <= few} />
        ))}
        {loaded && nodes.length === 0 && <p class="dim">There are no nodes.</p>}
      </div>
    </section>
  );
}

interface CardProperties {
  node: Node;
  usage?: Usage;
  samples: readonly Sample[];
  refused: string; // why the node's own figures are not to be had
  charted: boolean;
}

function NodeCard({ node, usage, samples, refused, charted }: CardProperties) {
  const now = useNow();
  const [charts, setCharts] = useState(charted);
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
        <button type="button" aria-pressed={charts} onClick={() => setCharts(!charts)}>Charts</button>
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
      {charts && <Charts node={node.metadata.name} samples={samples} refused={refused} />}
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

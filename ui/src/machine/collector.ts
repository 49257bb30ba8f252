// SPDX-License-Identifier: Apache-2.0

import { ApiError, kube } from "../api/client";
import { read, withSample, type Counters, type Sample, type Summary } from "./history";
import { quantity } from "./quantity";

/** Usage is what a node uses now. */
export interface Usage {
  cpu: number; // cores
  memory: number; // bytes
  disk?: { used: number; capacity: number };
}

interface Metrics {
  items?: { metadata: { name: string }; usage?: { cpu?: string; memory?: string } }[];
}

/** How often figures are asked for while the page is seen, and while it is not: then browsers let a page do something once a minute. */
export const every = 10_000;
export const everyUnseen = 50_000;

interface Kept {
  samples: Sample[];
  counters: Counters;
  disk?: Usage["disk"];
  refused?: string; // the server's words; it is not asked again until the view is opened anew
}

/** Collector asks for the figures of nodes, from when they are first looked at until the page is closed: nodes keep no past. */
export class Collector {
  usage: ReadonlyMap<string, Usage> = new Map();
  problem = "";
  private readonly nodes = new Map<string, Kept>();
  private readonly listeners = new Set<() => void>();
  private timer?: ReturnType<typeof setInterval>;
  private stop = new AbortController();
  private last = 0;
  private asking = false;

  /** samplesOf is what is remembered of a node. */
  samplesOf(node: string): readonly Sample[] {
    return this.nodes.get(node)?.samples ?? [];
  }

  /** refusedOf is why a node's own figures are not to be had, "" if they are. */
  refusedOf(node: string): string {
    return this.nodes.get(node)?.refused ?? "";
  }

  /** follow asks for these nodes' figures; f is called when there are new ones. It returns how to leave; the asking goes on. */
  follow(names: readonly string[], f: () => void): () => void {
    this.listeners.add(f);
    for (const gone of [...this.nodes.keys()].filter((n) => !names.includes(n))) {
      this.nodes.delete(gone);
    }
    for (const name of names) {
      const kept = this.nodes.get(name);
      if (kept) {
        kept.refused = undefined;
      } else {
        this.nodes.set(name, { samples: [], counters: new Map() });
      }
    }
    this.timer ??= setInterval(() => void this.ask(), every);
    if (Date.now() - this.last >= every / 2) {
      void this.ask(true);
    }
    return () => this.listeners.delete(f);
  }

  /** clear forgets everything, as when the session is over. */
  clear(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.stop.abort();
    this.stop = new AbortController();
    this.nodes.clear();
    this.usage = new Map();
    this.problem = "";
    this.last = 0;
  }

  private async ask(now = false): Promise<void> {
    const seen = !document.hidden;
    if (this.asking || this.nodes.size === 0 || (!now && !seen && Date.now() - this.last < everyUnseen)) {
      return;
    }
    this.asking = true;
    this.last = Date.now();
    const { signal } = this.stop;
    try {
      await Promise.all([...this.nodes].map(([name, kept]) => this.askNode(name, kept, signal)));
      if (this.listeners.size > 0) {
        await this.askMetrics(signal);
      }
    } finally {
      this.asking = false;
    }
    if (!signal.aborted) {
      this.listeners.forEach((f) => f());
    }
  }

  /** askNode asks a node itself, which takes a right of its own. */
  private async askNode(name: string, kept: Kept, signal: AbortSignal): Promise<void> {
    if (kept.refused) {
      return;
    }
    try {
      const summary = await kube<Summary>(`/api/v1/nodes/${encodeURIComponent(name)}/proxy/stats/summary`, { signal });
      const { sample, counters } = read(summary, kept.counters, Date.now());
      const fs = summary.node?.fs;
      kept.samples = withSample(kept.samples, sample);
      kept.counters = counters;
      kept.disk = fs?.capacityBytes ? { used: fs.usedBytes ?? 0, capacity: fs.capacityBytes } : undefined;
    } catch (error) {
      if (error instanceof ApiError && !error.passing) {
        kept.refused = error.message;
      }
    }
  }

  private async askMetrics(signal: AbortSignal): Promise<void> {
    try {
      const metrics = await kube<Metrics>("/apis/metrics.k8s.io/v1beta1/nodes", { signal });
      this.usage = new Map((metrics.items ?? []).map((i): [string, Usage] => [i.metadata.name, {
        cpu: quantity(i.usage?.cpu), memory: quantity(i.usage?.memory), disk: this.nodes.get(i.metadata.name)?.disk,
      }]));
      this.problem = "";
    } catch (error) {
      if (!signal.aborted) {
        this.problem = error instanceof Error ? error.message : String(error);
      }
    }
  }
}

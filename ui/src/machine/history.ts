// SPDX-License-Identifier: Apache-2.0

// What a node and its pods used, over the last hour. A node tells what is used now (/stats/summary) and keeps no past: the
// page remembers what it was told. All of this is pure.

/** Figures are what is used. NaN is not known. */
export interface Figures {
  cpu: number; // cores
  memory: number; // bytes that could not be had by a program that wants them
  disk: number; // bytes
}

/** Sample is what a node and its largest pods used at a moment. */
export interface Sample {
  at: number; // milliseconds
  node: Figures;
  pods: ReadonlyMap<string, Figures>; // by namespace/name
}

interface Stats {
  cpu?: { time?: string; usageNanoCores?: number; usageCoreNanoSeconds?: number };
  memory?: { workingSetBytes?: number };
}

/** Summary is the part of a node's /stats/summary that the page reads. */
export interface Summary {
  node?: Stats & { fs?: { usedBytes?: number; capacityBytes?: number } };
  pods?: (Stats & { podRef?: { name?: string; namespace?: string; uid?: string }; "ephemeral-storage"?: { usedBytes?: number } })[];
}

/** Counters are how much CPU time was used until when, by the pods' UIDs; that of the node is at "". */
export type Counters = ReadonlyMap<string, { at: number; used: number }>;

export const hour = 3600_000;
const most = 20; // pods of a sample, for each figure

/** read makes a sample of a summary. CPU is what was used since the summary before. */
export function read(summary: Summary, before: Counters, now: number): { sample: Sample; counters: Counters } {
  const counters = new Map<string, { at: number; used: number }>();
  const cpuOf = (uid: string, { cpu }: Stats): number => {
    const [at, used, had] = [Date.parse(cpu?.time ?? ""), cpu?.usageCoreNanoSeconds ?? NaN, before.get(uid)];
    if (!Number.isNaN(at) && !Number.isNaN(used)) {
      counters.set(uid, { at, used });
    }
    return had && at > had.at && used >= had.used ? (used - had.used) / (at - had.at) / 1e6 : (cpu?.usageNanoCores ?? NaN) / 1e9;
  };
  const memoryOf = ({ memory }: Stats) => memory?.workingSetBytes ?? NaN;
  const { node = {}, pods = [] } = summary;
  const all = new Map<string, Figures>();
  for (const pod of pods) {
    const { name, namespace, uid } = pod.podRef ?? {};
    all.set(`${namespace}/${name}`, { cpu: cpuOf(uid || `${namespace}/${name}`, pod), memory: memoryOf(pod), disk: pod["ephemeral-storage"]?.usedBytes ?? NaN });
  }
  const sample = { at: now, node: { cpu: cpuOf("", node), memory: memoryOf(node), disk: node.fs?.usedBytes ?? NaN }, pods: trimmed(all) };
  return { sample, counters };
}

/** trimmed are the pods that use the most of something: an hour of thousands would fill the browser's memory. */
function trimmed(pods: ReadonlyMap<string, Figures>): ReadonlyMap<string, Figures> {
  if (pods.size <= most) {
    return pods;
  }
  const keep = new Set<string>();
  for (const figure of ["cpu", "memory", "disk"] as const) {
    [...pods].sort(([, a], [, b]) => (b[figure] || 0) - (a[figure] || 0)).slice(0, most).forEach(([name]) => keep.add(name));
  }
  return new Map([...pods].filter(([name]) => keep.has(name)));
}

/** withSample is an hour of samples with one more. */
export function withSample(samples: readonly Sample[], next: Sample): Sample[] {
  return [...samples.filter((s) => s.at > next.at - hour && s.at < next.at), next];
}

/** largest are the pods that used the most over all samples. */
export function largest(samples: readonly Sample[], figure: keyof Figures, count: number): string[] {
  const sums = new Map<string, number>();
  for (const { pods } of samples) {
    for (const [name, used] of pods) {
      sums.set(name, (sums.get(name) ?? 0) + (used[figure] || 0));
    }
  }
  return [...sums].filter(([, sum]) => sum > 0).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, count).map(([name]) => name);
}

/** Lines are times in seconds, then what the node used, then each pod: null where it is not known. */
export type Lines = (number | null)[][];

/** linesOf are the lines of a chart. Where nobody has asked for longer than that there is a gap. */
export function linesOf(samples: readonly Sample[], figure: keyof Figures, pods: readonly string[], longest: number): Lines {
  const lines: Lines = [[], [], ...pods.map(() => [])];
  const add = (at: number, values: readonly (number | undefined)[]) => {
    lines[0]!.push(at / 1000);
    values.forEach((value, i) => lines[i + 1]!.push(value === undefined || Number.isNaN(value) ? null : value));
  };
  samples.forEach((s, i) => {
    const last = samples[i - 1];
    if (last && s.at - last.at > longest) {
      add((last.at + s.at) / 2, [undefined, ...pods.map(() => undefined)]);
    }
    add(s.at, [s.node[figure], ...pods.map((name) => s.pods.get(name)?.[figure])]);
  });
  return lines;
}

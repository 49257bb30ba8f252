// SPDX-License-Identifier: Apache-2.0

// What a node noted of one pod: the subresource pods/timeline, as internal/timeline has it.

export type Kind = "init" | "sidecar" | "main" | "ephemeral" | string;

export interface LifeContainer {
  name: string;
  kind: Kind;
}

/** Moment is one thing that happened. */
export interface Moment {
  seq: number;
  at: string;
  last?: string;
  times?: number;
  what: string;
  edge?: "begin" | "end";
  container?: string;
  attempt?: number;
  probe?: string;
  failed?: boolean;
  code?: number;
  text?: string;
}

/** History is all that a node noted of one pod; in a stream, a later one holds only what has changed. */
export interface History {
  namespace?: string;
  name?: string;
  uid?: string;
  node?: string;
  created?: string;
  containers?: LifeContainer[];
  moments?: Moment[] | null;
  gone?: boolean;
  now: string;
}

/** merge takes a later part of the same history in. */
export function merge(history: History | null, part: History): History {
  if (!history || (part.uid && history.uid && part.uid !== history.uid)) {
    return { ...part, moments: part.moments ?? [] };
  }
  const bySeq = new Map((history.moments ?? []).map((m) => [m.seq, m]));
  for (const m of part.moments ?? []) {
    bySeq.set(m.seq, m);
  }
  return {
    ...history,
    ...(part.uid ? part : {}),
    gone: history.gone || part.gone,
    now: time(part.now) > time(history.now) ? part.now : history.now,
    moments: [...bySeq.values()],
  };
}

/** time is a time of the API as milliseconds with their fractions: a start takes a few of them. NaN if it is none. */
export function time(text: string | undefined): number {
  if (!text) {
    return NaN;
  }
  const parts = /^(.*:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!parts) {
    return Date.parse(text);
  }
  return Date.parse(parts[1]! + parts[3]!) + (parts[2] ? Number(parts[2]) * 1000 : 0);
}

/** inOrder returns moments in the order in which they happened. */
export function inOrder(history: History): Moment[] {
  return [...(history.moments ?? [])]
    .filter((m) => !Number.isNaN(time(m.at)))
    .sort((a, b) => time(a.at) - time(b.at) || a.seq - b.seq);
}

/** beginOf is the zero of a pod's life: when the node learnt of it, or the first moment there is. */
export function beginOf(history: History): number {
  const moments = inOrder(history);
  const seen = moments.find((m) => m.what === "seen");
  const first = seen ?? moments.find((m) => m.what !== "scheduled" && m.what !== "agent");
  return first ? time(first.at) : time(history.now);
}

/** endOf is where a picture of it ends: now, or the last moment of a pod that is gone. */
export function endOf(history: History): number {
  let last = -Infinity;
  for (const m of history.moments ?? []) {
    if (m.what !== "scheduled") {
      // by another clock
      for (const t of [time(m.at), time(m.last)]) {
        last = t > last ? t : last;
      }
    }
  }
  return history.gone && last > -Infinity ? last : Math.max(last, time(history.now));
}

/** phaseOf is the pod's last phase, "" if none was noted. */
export function phaseOf(history: History): string {
  const phases = inOrder(history).filter((m) => m.what === "phase");
  return (phases[phases.length - 1]?.text ?? "").split(":")[0]!;
}

/** hasEnded reports whether the pod has come to its end. */
export function hasEnded(history: History): boolean {
  const phase = phaseOf(history);
  return phase === "Failed" || phase === "Succeeded";
}

// SPDX-License-Identifier: Apache-2.0

// Who looked into which pod, put together from what the server keeps: records of debugging (DebugRuns), the condition of
// pods that somebody has entered, and events, which are all there is of a cluster that is not Wherry's.

import type { Condition, KubeEvent, KubeObject, Pod } from "../api/types";
import { lastOf } from "../pod/events";
import type { Tone } from "../pods/status";
import { sessionsOf } from "./sessions";

/** DebugRun is the record of one run of a debug container, or of one command from an image. */
export interface DebugRun extends KubeObject {
  spec?: {
    kind?: string; pod?: { name?: string; uid?: string; node?: string }; container?: string; run?: number; image?: string;
    command?: string[]; args?: string[]; target?: string; writable?: boolean; user?: string;
  };
  status?: { startedAt?: string; finishedAt?: string; exitCode?: number; reason?: string; message?: string };
}

/** Entry is a line of the record. */
export interface Entry {
  key: string;
  at: string; // when it began; of what is known by its last time only, that
  namespace: string;
  pod: string;
  user: string; // "" where only the words say it
  how: string;
  what: string;
  command: string;
  end: string;
  tone: Tone;
  from?: string; // when its process started, and when it ended
  to?: string;
  facts: [name: string, value: string][]; // what the line has no room for
  record?: string; // the DebugRun's name
}

/** The condition of a pod that somebody has entered. */
export const tainted = "wherry.dev/Tainted";

/** Reasons of the events on which a record may rest: those of Wherry, and of a cluster where debugging is installed. */
export const reasons = { wherry: ["DebugContainerAdded", "ImageExec"], cluster: ["DebugSessionStarted", "DebugSessionEnded"] };

/** taintOf is a pod's condition Tainted, if somebody has entered it. */
export function taintOf(pod: Pod): Condition | undefined {
  return pod.status?.conditions?.find((c) => c.type === tainted && c.status === "True");
}

/** entriesOf are all that is known, the newest first. What an event or a condition says that a record says too is left out. */
export function entriesOf(runs: readonly DebugRun[], pods: readonly Pod[], events: readonly KubeEvent[]): Entry[] {
  const all = [...runs, ...sessionsOf(events)];
  const known = new Set(all.flatMap((r) => keysOf(r)));
  const others = events.filter((e) => reasons.wherry.includes(e.reason ?? "") && !known.has(keyOfEvent(e)));
  others.forEach((e) => known.add(`${e.involvedObject?.uid} ${e.reason === "DebugContainerAdded" ? "DebugContainer" : e.reason}`));
  return [
    ...all.map(ofRun),
    ...others.map(ofEvent),
    ...pods.flatMap((pod) => {
      const c = taintOf(pod);
      return c && !known.has(`${pod.metadata.uid} ${c.reason}`) ? [ofTaint(pod, c)] : [];
    }),
  ].sort((a, b) => (Date.parse(b.at) || 0) - (Date.parse(a.at) || 0) || (a.key < b.key ? -1 : 1));
}

/** enteredOf are the pods that somebody has entered, the last entered first. */
export function enteredOf(pods: readonly Pod[]): Entry[] {
  return pods.flatMap((pod) => {
    const c = taintOf(pod);
    return c ? [ofTaint(pod, c)] : [];
  }).sort((a, b) => (Date.parse(b.at) || 0) - (Date.parse(a.at) || 0));
}

/** keysOf are by what events and conditions name the same as a record does. */
function keysOf(run: DebugRun): string[] {
  const { kind, pod, container } = run.spec ?? {};
  return kind === "EphemeralContainer"
    ? [`${pod?.uid} DebugContainer`, `${pod?.uid} DebugContainerAdded ${container ?? ""}`]
    : [`${pod?.uid} ImageExec`];
}

function keyOfEvent(e: KubeEvent): string {
  const container = /^spec\.ephemeralContainers\{(.*)\}$/.exec(e.involvedObject?.fieldPath ?? "")?.[1] ?? "";
  return `${e.involvedObject?.uid} ${e.reason} ${container}`.trimEnd();
}

const ways = new Map([
  ["EphemeralContainer", "debug container"], ["DebugContainer", "debug container"], ["DebugContainerAdded", "debug container"], ["ImageExec", "image exec"],
  ["Exec", "exec"], ["Shell", "shell"], ["Files", "files"],
]);

/** howOf words a kind of record, or the reason of a condition or event. */
function howOf(kind: string): string {
  return ways.get(kind) ?? kind;
}

function ofRun(run: DebugRun): Entry {
  const { kind = "", pod, container, image = "", target, writable, user = "", command = [], args = [] } = run.spec ?? {};
  const { startedAt, finishedAt, reason, message } = run.status ?? {};
  const words = [...command, ...args];
  const facts: [string, string | undefined][] = [
    ["Command", words.length > 0 ? quoted(words) : "the image's own"], ["Image", image], ["Container", container], ["Beside", target],
    ["Run", run.spec?.run ? `${run.spec.run + 1} of this name` : undefined], ["Files", kind === "ImageExec" ? (writable ? "could be written" : "could be read only") : undefined],
    ["Node", pod?.node], ["Pod's UID", pod?.uid], ["Why", [reason, message].filter(Boolean).join(": ") || undefined],
  ];
  return {
    key: `run ${run.metadata.namespace}/${run.metadata.name}`, at: run.metadata.creationTimestamp ?? startedAt ?? "",
    namespace: run.metadata.namespace ?? "", pod: pod?.name ?? "", user, how: howOf(kind),
    what: [container, image && `of ${image}`, target && `beside ${target}`, writable && "may write"].filter(Boolean).join(" "),
    command: words.join(" "), ...endOf(run.status ?? {}), from: startedAt, to: finishedAt,
    facts: facts.filter((f): f is [string, string] => Boolean(f[1])), record: run.metadata.uid ? run.metadata.name : undefined,
  };
}

/** endOf is how a run ended, or how far it is. */
function endOf({ exitCode, finishedAt, startedAt, reason }: NonNullable<DebugRun["status"]>): { end: string; tone: Tone } {
  if (exitCode !== undefined) {
    return { end: `exit ${exitCode}`, tone: exitCode === 0 ? "done" : "bad" };
  }
  if (finishedAt) {
    return { end: reason || "ended", tone: reason === "Refused" ? "bad" : "idle" };
  }
  return startedAt ? { end: "running", tone: "busy" } : { end: reason || "pending", tone: reason ? "bad" : "busy" };
}

function ofTaint(pod: Pod, c: Condition): Entry {
  return {
    key: `pod ${pod.metadata.namespace}/${pod.metadata.name}`, at: c.lastProbeTime ?? c.lastTransitionTime ?? "", namespace: pod.metadata.namespace ?? "",
    pod: pod.metadata.name, user: "", how: howOf(c.reason ?? ""), what: c.message ?? "", command: "", end: "", tone: "idle",
    facts: [["Last entered", c.message ?? ""], ["Entered since", c.lastTransitionTime ?? ""], ["Pod's UID", pod.metadata.uid ?? ""]],
  };
}

function ofEvent(e: KubeEvent): Entry {
  const count = e.series?.count ?? e.count ?? 1;
  return {
    key: `event ${e.metadata.namespace}/${e.metadata.name}`, at: lastOf(e), namespace: e.involvedObject?.namespace ?? e.metadata.namespace ?? "",
    pod: e.involvedObject?.name ?? "", user: "", how: howOf(e.reason ?? ""), what: (e.message ?? "") + (count > 1 ? ` (${count} times)` : ""),
    command: "", end: "", tone: "idle", facts: [["Event", e.message ?? ""], ["Pod's UID", e.involvedObject?.uid ?? ""]],
  };
}

/** quoted are the words of a command so that one sees where each ends. */
function quoted(words: readonly string[]): string {
  return words.map((w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : JSON.stringify(w))).join(" ");
}

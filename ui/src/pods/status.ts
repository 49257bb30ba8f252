// SPDX-License-Identifier: Apache-2.0

// What `kubectl get pods` says of a pod: the same rules as Kubernetes' printer, as a pure function.

import type { ContainerStatus, Pod, Terminated } from "../api/types";

/** Tone is how urgent a status is. */
export type Tone = "good" | "busy" | "bad" | "done" | "idle";

/** Row is a pod as a line of a list. */
export interface Row {
  ready: number;
  containers: number;
  status: string;
  restarts: number;
  lastRestart?: string; // time of the last end that led to a restart
  tone: Tone;
  waitsFor: string; // a word for what it waits for, "" where nothing is waited for
}

/** rowOf says how a pod is. */
export function rowOf(pod: Pod): Row {
  const count = new Counter(pod);
  const initializing = count.init();
  if (!initializing || conditionIs(pod, "Initialized", "True")) {
    count.main();
  }
  const phase = pod.status?.phase ?? "";
  if (pod.metadata.deletionTimestamp && pod.status?.reason === "NodeLost") {
    count.status = "Unknown";
  } else if (pod.metadata.deletionTimestamp && phase !== "Succeeded" && phase !== "Failed") {
    count.status = "Terminating";
  }
  const row: Row = {
    ready: count.ready,
    containers: count.containers,
    status: count.status || "Unknown",
    restarts: count.restarts,
    lastRestart: count.lastRestart,
    tone: "idle",
    waitsFor: "",
  };
  row.tone = toneOf(row);
  row.waitsFor = waitsFor(pod, row);
  return row;
}

class Counter {
  ready = 0;
  restarts = 0;
  lastRestart?: string;
  containers: number;
  status: string;
  private sidecarRestarts = 0;
  private sidecarLast?: string;
  private readonly sidecars: Set<string>;

  constructor(private readonly pod: Pod) {
    const inits = pod.spec?.initContainers ?? [];
    this.sidecars = new Set(inits.filter((c) => c.restartPolicy === "Always").map((c) => c.name));
    this.containers = (pod.spec?.containers ?? []).length + this.sidecars.size;
    this.status = pod.status?.reason || pod.status?.phase || "";
    if (pod.status?.conditions?.some((c) => c.type === "PodScheduled" && c.reason === "SchedulingGated")) {
      this.status = "SchedulingGated";
    }
  }

  /** init reads the init containers' statuses, and reports whether the pod is still at them. */
  init(): boolean {
    const statuses = this.pod.status?.initContainerStatuses ?? [];
    for (const [i, c] of statuses.entries()) {
      const sidecar = this.sidecars.has(c.name);
      this.restarts += c.restartCount ?? 0;
      this.lastRestart = later(this.lastRestart, c.lastState?.terminated?.finishedAt);
      if (sidecar) {
        this.sidecarRestarts += c.restartCount ?? 0;
        this.sidecarLast = later(this.sidecarLast, c.lastState?.terminated?.finishedAt);
      }
      const ended = c.state?.terminated;
      if (ended && ended.exitCode === 0) {
        continue;
      }
      if (sidecar && c.started) {
        this.ready += c.ready ? 1 : 0;
        continue;
      }
      const waiting = c.state?.waiting?.reason;
      if (ended) {
        this.status = "Init:" + endWords(ended);
      } else if (waiting && waiting !== "PodInitializing") {
        this.status = "Init:" + waiting;
      } else {
        this.status = `Init:${i}/${(this.pod.spec?.initContainers ?? []).length}`;
      }
      return true;
    }
    return false;
  }

  /** main reads those of the main containers. */
  main(): void {
    this.restarts = this.sidecarRestarts;
    this.lastRestart = this.sidecarLast;
    let running = false;
    let failure = "";
    for (const c of [...(this.pod.status?.containerStatuses ?? [])].reverse()) {
      this.restarts += c.restartCount ?? 0;
      this.lastRestart = later(this.lastRestart, c.lastState?.terminated?.finishedAt);
      const ended = c.state?.terminated;
      if (c.state?.waiting?.reason) {
        this.status = c.state.waiting.reason;
      } else if (ended) {
        this.status = endWords(ended);
        failure = ended.exitCode !== 0 ? this.status : failure;
      } else if (c.ready && c.state?.running) {
        running = true;
        this.ready++;
      }
    }
    if (this.status === "Completed") {
      if (running && conditionIs(this.pod, "Ready", "True")) {
        this.status = "Running";
      } else if (failure) {
        this.status = failure;
      } else if (running) {
        this.status = "NotReady";
      }
    }
  }
}

function endWords(ended: Terminated): string {
  return ended.reason || (ended.signal ? `Signal:${ended.signal}` : `ExitCode:${ended.exitCode}`);
}

function later(a: string | undefined, b: string | undefined): string | undefined {
  return b && (!a || Date.parse(b) > Date.parse(a)) ? b : a;
}

function conditionIs(pod: Pod, type: string, status: string): boolean {
  return pod.status?.conditions?.some((c) => c.type === type && c.status === status) ?? false;
}

/** toneOf says how urgent a status is. */
function toneOf(row: Row): Tone {
  const status = row.status.replace(/^Init:/, "");
  if (status === "Completed" || status === "Succeeded") {
    return "done";
  }
  if (status === "Running") {
    return row.ready === row.containers ? "good" : "busy";
  }
  if (status === "SchedulingGated" || status === "Pending" || status === "Terminating") {
    return "busy";
  }
  if (/^(ContainerCreating|PodInitializing|NotReady|\d+\/\d+)$/.test(status)) {
    return "busy";
  }
  return "bad";
}

/** waitsFor is a word, or a few, for what a pod waits for. */
function waitsFor(pod: Pod, row: Row): string {
  const scheduled = pod.status?.conditions?.find((c) => c.type === "PodScheduled");
  if (row.tone === "good" || row.tone === "done") {
    return "";
  }
  if (row.status === "Terminating") {
    return "its containers to end";
  }
  if (scheduled?.reason === "SchedulingGated") {
    return "its scheduling gates";
  }
  if (!pod.spec?.nodeName) {
    return scheduled?.status === "False" ? "a node that fits" : "a node";
  }
  for (const c of pod.status?.initContainerStatuses ?? []) {
    const sidecar = pod.spec.initContainers?.some((i) => i.name === c.name && i.restartPolicy === "Always");
    if (c.state?.terminated?.exitCode !== 0 && !(sidecar && c.started)) {
      return containerWaits(c, sidecar ? "sidecar " : "init container ");
    }
  }
  for (const c of pod.status?.containerStatuses ?? []) {
    if (!c.ready && c.state?.terminated?.exitCode !== 0) {
      return containerWaits(c, "");
    }
  }
  return row.status === "ContainerCreating" ? "its containers" : "";
}

function containerWaits(c: ContainerStatus, kind: string): string {
  const who = kind + c.name;
  switch (c.state?.waiting?.reason) {
    case "CrashLoopBackOff":
      return `the next try of ${who}`;
    case "ErrImagePull":
    case "ImagePullBackOff":
    case "ErrImageNeverPull":
    case "InvalidImageName":
      return `the image of ${who}`;
    case "CreateContainerConfigError":
    case "CreateContainerError":
    case "RunContainerError":
      return `what ${who} needs`;
  }
  if (c.state?.running) {
    return kind === "init container " ? who : c.started === false ? `the start of ${who}` : `the readiness of ${who}`;
  }
  return who;
}

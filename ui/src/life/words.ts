// SPDX-License-Identifier: Apache-2.0

import type { Moment } from "./history";

/** took words a duration in milliseconds as a person reads it: three digits or two units. */
export function took(ms: number): string {
  if (!(ms > 0)) {
    return "0ms";
  }
  if (ms < 99.5) {
    return `${Math.round(ms)}ms`;
  }
  if (ms < 9995) {
    return `${(ms / 1000).toFixed(2)}s`;
  }
  if (ms < 59950) {
    return `${(ms / 1000).toFixed(1)}s`;
  }
  const s = Math.round(ms / 1000);
  if (s < 3600) {
    return `${Math.floor(s / 60)}m${String(s % 60).padStart(2, "0")}s`;
  }
  const m = Math.round(ms / 60_000);
  if (m < 24 * 60) {
    return `${Math.floor(m / 60)}h${String(m % 60).padStart(2, "0")}m`;
  }
  const h = Math.round(ms / 3_600_000);
  return `${Math.floor(h / 24)}d${String(h % 24).padStart(2, "0")}h`;
}

/** since words a round distance from the beginning: "0s", "20ms", "0.3s", "1m30s". */
export function since(ms: number): string {
  if (ms === 0) {
    return "0s";
  }
  if (ms < 60_000 && ms % 1000 === 0) {
    return `${ms / 1000}s`;
  }
  if (ms < 100 || ms >= 10_000) {
    return took(ms);
  }
  return ms % 100 === 0 ? `${(ms / 1000).toFixed(1)}s` : took(ms);
}

const doing: Record<string, [string, string]> = {
  volumes: ["is preparing its volumes", "volumes are ready"],
  sandbox: ["is creating its sandbox", "sandbox is up"],
  pull: ["is pulling its image", "image pulled"],
  start: ["is being created and started", "start completed"],
  postStart: ["is running its postStart hook", "postStart hook is done"],
  preStop: ["is running its preStop hook", "preStop hook is done"],
  stop: ["gets its stop signal", "has stopped"],
  takeDown: ["is removing its sandbox", "sandbox is removed"],
  cleanUp: ["cleans up", "has cleaned up"],
};

const said: Record<string, string> = {
  seen: "was seen by the node",
  scheduled: "was assigned a node",
  created: "created",
  running: "runs",
  started: "has started",
  ready: "ready",
  unready: "not ready",
  waiting: "waits",
  sandboxLost: "its sandbox has died",
  deleted: "is being deleted",
  phase: "is now",
  removed: "is gone from the API server",
  left: "has left the node",
  agent: "the node's agent was restarted",
};

/** describe puts a moment into words, without its time and container. */
export function describe(m: Moment): string {
  if (m.what === "folded") {
    return `${m.times ?? 1} moments are omitted here`;
  }
  const op = doing[m.what];
  let text = said[m.what] ?? m.what;
  if (op && m.edge === "begin") {
    text = op[0];
  } else if (op) {
    text = m.failed ? op[0] + ": failed" : op[1];
  } else if (m.what === "exited") {
    text = `exit ${m.code ?? 0}`;
  } else if (m.what === "probed") {
    text = `${m.probe ?? ""} probe ${m.failed ? "failed" : "passed"}`;
  }
  if ((m.times ?? 1) > 1) {
    text += ` (${m.times} times)`;
  }
  return m.text ? `${text}: ${m.text}` : text;
}

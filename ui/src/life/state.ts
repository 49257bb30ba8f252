// SPDX-License-Identifier: Apache-2.0

// How a pod or container is now, in a few words, as its node noted it.

import { hasEnded, phaseOf, type History } from "./history";
import { exitWords, type Attempt, type Track } from "./tracks";

/** stateOf says how a track's owner is. */
export function stateOf(history: History, track: Track): string {
  return track.name === "" ? podState(history, track) : containerState(history, track);
}

function podState(history: History, track: Track): string {
  const life = track.attempts[0];
  if (!life) {
    return "";
  }
  if (history.gone) {
    return "gone";
  }
  if (hasEnded(history)) {
    return phaseOf(history).toLowerCase();
  }
  if (history.moments?.some((m) => m.what === "deleted")) {
    return "being deleted";
  }
  return life.switches[life.switches.length - 1]?.what === "ready" ? "ready" : "not ready";
}

function containerState(history: History, track: Track): string {
  const newest = track.attempts[track.attempts.length - 1];
  if (!newest) {
    return "waiting";
  }
  let text: string;
  const wait = newest.waits[newest.waits.length - 1]?.text?.split(":")[0] ?? "";
  if (newest.exited !== undefined) {
    text = wait && !hasEnded(history) && !history.gone ? wait : exitWords(newest);
  } else if (newest.running !== undefined) {
    text = runningState(track, newest);
  } else {
    const open = newest.operations.filter((o) => o.open).map((o) => o.what);
    text = open.includes("start") ? "starting" : open.includes("pull") ? "pulling" : wait || "waiting";
  }
  if (newest.number === 0) {
    return text;
  }
  if (track.kind === "ephemeral") {
    return `${text}, ${newest.number + 1} runs`; // nothing starts it again but its user
  }
  return `${text}, ${newest.number === 1 ? "1 restart" : newest.number + " restarts"}`;
}

function runningState(track: Track, attempt: Attempt): string {
  const open = attempt.operations.find((o) => o.open && (o.what === "stop" || o.what === "preStop"));
  if (open) {
    return open.what === "stop" ? "stopping" : "preStop hook";
  }
  if (track.kind === "init" || track.kind === "ephemeral") {
    return "running";
  }
  if (attempt.switches.every((s) => s.what === "unready")) {
    return "not started";
  }
  const last = attempt.switches.filter((s) => s.what !== "started").pop();
  return last?.what === "ready" ? "ready" : "not ready";
}

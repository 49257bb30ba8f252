// SPDX-License-Identifier: Apache-2.0

// A history sorted into tracks: one for the pod and one for each container, each with its attempts.

import { endOf, inOrder, time, type History, type LifeContainer, type Moment } from "./history";

/** Operation is one from its beginning to its end. */
export interface Operation {
  what: string;
  attempt: number;
  from: number;
  to: number;
  open: boolean; // it goes on
  failed: boolean;
  text: string;
}

/** Attempt is one run of a container, with what led to it. */
export interface Attempt {
  number: number;
  began: number;
  operations: Operation[];
  created?: number;
  running?: number;
  exited?: number;
  code: number;
  reason: string;
  switches: Moment[]; // started, ready, unready
  probes: Moment[];
  waits: Moment[];
}

/** Track is one container's, or, with an empty name, the pod's own, which has one attempt. */
export interface Track extends LifeContainer {
  attempts: Attempt[];
}

const ofNewest = new Set(["started", "ready", "unready", "waiting", "folded"]);

/** tracksOf sorts a history, the pod's track first. */
export function tracksOf(history: History): Track[] {
  const tracks = new Map<string, Track>([["", { name: "", kind: "pod", attempts: [] }]]);
  for (const c of history.containers ?? []) {
    if (!tracks.has(c.name)) {
      tracks.set(c.name, { ...c, attempts: [] });
    }
  }
  const moments = inOrder(history);
  moments.forEach((m, i) => {
    const name = m.container ?? "";
    let track = tracks.get(name);
    if (!track) {
      track = { name, kind: "main", attempts: [] };
      tracks.set(name, track);
    }
    const attempt = attemptOf(track, m);
    if (m.edge === "begin") {
      attempt.operations.push(operationFrom(history, moments, i));
    } else if (!m.edge) {
      note(attempt, m);
    }
  });
  for (const track of tracks.values()) {
    track.attempts.sort((a, b) => a.number - b.number);
  }
  return [...tracks.values()];
}

function attemptOf(track: Track, m: Moment): Attempt {
  let number = m.attempt ?? 0;
  if (track.name === "") {
    number = 0;
  } else if (ofNewest.has(m.what) && track.attempts.length > 0) {
    number = Math.max(...track.attempts.map((a) => a.number)); // it carries no number of its own
  }
  let attempt = track.attempts.find((a) => a.number === number);
  if (!attempt) {
    attempt = { number, began: time(m.at), operations: [], code: 0, reason: "", switches: [], probes: [], waits: [] };
    track.attempts.push(attempt);
  }
  return attempt;
}

function note(attempt: Attempt, m: Moment): void {
  const at = time(m.at);
  switch (m.what) {
    case "created":
      attempt.created = at;
      break;
    case "running":
      attempt.running = at;
      break;
    case "exited":
      attempt.exited = at;
      attempt.code = m.code ?? 0;
      attempt.reason = m.text ?? "";
      break;
    case "started":
    case "ready":
    case "unready":
      attempt.switches.push(m);
      break;
    case "probed":
      attempt.probes.push(m);
      break;
    case "waiting":
      attempt.waits.push(m);
      break;
  }
}

/** operationFrom finds the end of the operation that begins at moment i: its own, its next beginning, or the agent's. */
function operationFrom(history: History, moments: Moment[], i: number): Operation {
  const b = moments[i]!;
  const out = { what: b.what, attempt: b.attempt ?? 0, from: time(b.at), text: b.text ?? "", open: false, failed: false };
  for (const m of moments.slice(i + 1)) {
    const same =
      m.what === b.what &&
      (m.container ?? "") === (b.container ?? "") &&
      (m.attempt ?? 0) === out.attempt &&
      (m.what !== "cleanUp" || (m.text ?? "").startsWith(out.text));
    if (same && m.edge === "end") {
      return { ...out, to: time(m.at), failed: m.failed === true, text: m.text ?? "" };
    }
    if (m.what === "agent" || (same && m.edge === "begin")) {
      return { ...out, to: time(m.at) };
    }
  }
  return { ...out, to: endOf(history), open: !history.gone };
}

/** exitWords say how an attempt ended: "exit 137 OOMKilled". */
export function exitWords(attempt: Attempt): string {
  const reason = attempt.reason.split(":")[0]!;
  const more = reason && reason !== "Completed" && reason !== "Error" ? " " + reason : "";
  return `exit ${attempt.code}${more}`;
}

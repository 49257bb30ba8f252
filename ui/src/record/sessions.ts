// SPDX-License-Identifier: Apache-2.0

// Debug sessions on a cluster that is not Wherry's: its events are the record, as they are to `wherry debug history`.

import type { KubeEvent } from "../api/types";
import type { DebugRun } from "./entries";

const noted = "debug.wherry.dev/session";

interface Session {
  id: string; as: string; container: string; image: string; command: string[]; writable: boolean; by: string; exitCode?: number; why: string;
}

/** sessionsOf reads sessions out of events. Of one whose beginning is forgotten already, the end says what it was. */
export function sessionsOf(events: readonly KubeEvent[]): DebugRun[] {
  const all = new Map<string, DebugRun>();
  for (const e of events) {
    const session = sessionIn(e.metadata.annotations?.[noted] ?? "");
    const ended = e.reason === "DebugSessionEnded";
    if (!session || (!ended && e.reason !== "DebugSessionStarted")) {
      continue;
    }
    const run = all.get(session.id) ?? runOf(e, session);
    all.set(session.id, run);
    if (ended) {
      run.status = { ...run.status, finishedAt: e.firstTimestamp, exitCode: session.exitCode, reason: session.why };
    } else {
      run.metadata.creationTimestamp = e.firstTimestamp;
      run.status = { ...run.status, startedAt: e.firstTimestamp };
    }
  }
  return [...all.values()];
}

function runOf(e: KubeEvent, s: Session): DebugRun {
  return {
    metadata: { name: s.id, namespace: e.involvedObject?.namespace ?? e.metadata.namespace, creationTimestamp: e.firstTimestamp },
    spec: {
      kind: s.as === "shell" ? "Shell" : s.as === "files" ? "Files" : "ImageExec", pod: { name: e.involvedObject?.name, uid: e.involvedObject?.uid },
      image: s.image || "wherry.dev/toolbox", command: s.command, target: s.container, writable: s.writable, user: s.by,
    },
    status: {},
  };
}

/** sessionIn reads an annotation; whoever may write events can have written it. */
function sessionIn(text: string): Session | null {
  let is: unknown;
  try {
    is = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof is !== "object" || is === null) {
    return null;
  }
  const of = is as Record<string, unknown>;
  const word = (name: string) => (typeof of[name] === "string" ? (of[name] as string) : "");
  const command = Array.isArray(of["command"]) ? of["command"].filter((w): w is string => typeof w === "string") : [];
  const exitCode = typeof of["exitCode"] === "number" ? of["exitCode"] : undefined;
  return word("id") === "" ? null : {
    id: word("id"), as: word("as"), container: word("container"), image: word("image"), command, writable: of["writable"] === true, by: word("by"), exitCode, why: word("why"),
  };
}

// SPDX-License-Identifier: Apache-2.0

// What stands between a pod and readiness, from its own fields and events, each with where it is from. The answer of
// `wherry why`, which looks at more, is a command's; it is named here.

import type { KubeEvent, Pod } from "../api/types";
import { Command } from "../frame/command";
import { href } from "../frame/router";
import { rowOf } from "../pods/status";
import { boxesOf, endOf } from "./containers";
import { lastOf } from "./events";

/** Evidence is a fact and where it is from. */
export interface Evidence {
  fact: string;
  from: string;
  container?: string;
  previous?: boolean;
}

/** evidenceOf collects the facts that say why a pod is not ready. */
export function evidenceOf(pod: Pod, events: KubeEvent[]): Evidence[] {
  const out: Evidence[] = [];
  for (const box of boxesOf(pod)) {
    const container = box.spec.name;
    const { state, lastState } = box.status ?? {};
    const waiting = state?.waiting;
    if (waiting?.reason && !["PodInitializing", "ContainerCreating"].includes(waiting.reason)) {
      out.push({ fact: join(`${container}: ${waiting.reason}`, waiting.message), from: `status of ${container}, state.waiting` });
    }
    const ended = state?.terminated ?? lastState?.terminated;
    if (ended && ended.exitCode !== 0) {
      out.push({
        fact: join(`${container}: its program ended with ${endOf(ended)}`, ended.message), container, previous: !state?.terminated,
        from: `status of ${container}, ${state?.terminated ? "state" : "lastState"}.terminated`,
      });
    }
  }
  for (const c of pod.status?.conditions ?? []) {
    if (c.status === "False" && c.message && c.reason !== "ContainersNotReady" && c.reason !== "ContainersNotInitialized") {
      out.push({ fact: join(`${c.type} is false`, c.message), from: `condition ${c.type}` });
    }
  }
  const warnings = events
    .filter((e) => e.type === "Warning" && (!e.involvedObject?.uid || e.involvedObject.uid === pod.metadata.uid))
    .sort((a, b) => Date.parse(lastOf(b)) - Date.parse(lastOf(a)));
  const told = new Set<string>();
  for (const e of warnings) {
    if (e.reason && !told.has(e.reason) && told.size < 4) {
      told.add(e.reason);
      out.push({ fact: e.message ?? "", from: `event ${e.reason}` });
    }
  }
  return out;
}

function join(what: string, words: string | undefined): string {
  return words ? `${what}: ${words}` : what;
}

/** WhyView shows the evidence where a pod is in trouble. */
export function WhyView({ pod, events }: { pod: Pod; events: KubeEvent[] }) {
  const row = rowOf(pod);
  const evidence = evidenceOf(pod, events);
  const { namespace, name } = pod.metadata;
  if (row.tone === "good" || row.tone === "done" || evidence.length === 0) {
    return null;
  }
  return (
    <section class={`card why why-${row.tone}`} aria-label="Why">
      <div class="card-head">
        <h2>Why it is not ready</h2>
        <span class="fill" />
        <Command words={["wherry", "why", name, "-n", namespace]} />
      </div>
      <ul>
        {evidence.map((e, i) => (
          <li key={i} class="wrap">
            {e.fact} <span class="dim">[{e.from}]</span>
            {e.container && <> <a href={href("pod/logs", { namespace, name, container: e.container, previous: e.previous ? "1" : undefined })}>its last words</a></>}
          </li>
        ))}
      </ul>
    </section>
  );
}

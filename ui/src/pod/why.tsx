// SPDX-License-Identifier: Apache-2.0

// What is wrong with a pod: the answer of `wherry why`, which the page's server gives with the reader's rights, and until it
// is there what the pod's own fields and events say, each with where it is from.

import { useEffect, useState } from "preact/hooks";
import { query, send } from "../api/client";
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
      out.push({ fact: e.message?.trim() ?? "", from: `event ${e.reason}` });
    }
  }
  return out;
}

function join(what: string, words: string | undefined): string {
  return words?.trim() ? `${what}: ${words.trim()}` : what;
}

/** WhyView says what is wrong with a pod, in the words of `wherry why`; until that is there, or where it is refused, what the pod itself says. */
export function WhyView({ pod, events }: { pod: Pod; events: KubeEvent[] }) {
  const row = rowOf(pod);
  const { namespace = "", name } = pod.metadata;
  const troubled = row.tone !== "good" && row.tone !== "done";
  const asked = `${namespace} ${name} ${pod.metadata.uid} ${row.status} ${row.restarts} ${events.length}`;
  const [answer, setAnswer] = useState<Answer | undefined>(undefined);
  useEffect(() => {
    if (!troubled) {
      return setAnswer(undefined);
    }
    const asks = new AbortController();
    send("/ui/why" + query({ namespace, name }), { signal: asks.signal })
      .then(async (response) => setAnswer((await response.json()) as Answer))
      .catch(() => asks.signal.aborted || setAnswer(undefined)); // what the pod says is shown, and the command that says why there is no more
    return () => asks.abort();
  }, [troubled, asked]);
  const evidence = troubled && !answer ? evidenceOf(pod, events) : [];
  if (!troubled || (!answer?.wrong && evidence.length === 0)) {
    return null;
  }
  return (
    <section class={`card why why-${row.tone}`} aria-label="Why">
      <div class="card-head">
        <h2>Why it is not ready</h2>
        <span class="fill" />
        <Command words={["wherry", "why", name, "-n", namespace]} />
      </div>
      {answer && answer.findings?.length !== 1 && <p class="wrap">{answer.summary}</p>}
      {answer ? <Findings answer={answer} namespace={namespace} name={name} /> : <FactList evidence={evidence} namespace={namespace} name={name} />}
    </section>
  );
}

/** Answer is what /ui/why says of a pod; see internal/why in the server. */
interface Answer {
  wrong: boolean;
  summary: string;
  findings: { where: string; what: string; past?: boolean; facts?: { says: string; from: string }[]; try?: string[] }[] | null;
  logs?: { container: string; previous?: boolean; lines: string[] }[];
  unseen?: { what: string; right?: string; why?: string }[];
}

interface Named {
  namespace: string;
  name: string;
}

function Findings({ answer, namespace, name }: Named & { answer: Answer }) {
  return (
    <>
      {(answer.findings ?? []).map((f, i) => (
        <div key={i} class={f.past ? "finding dim" : "finding"}>
          <p class="wrap"><strong>{f.where}</strong>: {f.what}{f.past && " (it is over)"}</p>
          <ul>
            {(f.facts ?? []).map((fact, j) => (
              <li key={j} class="wrap">{fact.says} <span class="dim">[{fact.from}]</span></li>
            ))}
          </ul>
          {f.try && f.try.length > 0 && (
            <p class="wrap"><span class="dim">Try: </span>{f.try.join("; ")}</p>
          )}
        </div>
      ))}
      {(answer.logs ?? []).map((log) => (
        <details key={log.container} open>
          <summary>
            The last lines of {log.container}{log.previous && ", of the run before"}:{" "}
            <a href={href("pod/logs", { namespace, name, container: log.container, previous: log.previous ? "1" : undefined })}>its last words</a>
          </summary>
          <pre class="last-lines">{log.lines.join("\n")}</pre>
        </details>
      ))}
      {answer.unseen && answer.unseen.length > 0 && (
        <p class="dim wrap">Not looked at: {answer.unseen.map((u) => `${u.what} (${u.right ? `it takes the right to ${u.right}` : u.why})`).join(", ")}.</p>
      )}
    </>
  );
}

function FactList({ evidence, namespace, name }: Named & { evidence: Evidence[] }) {
  return (
    <ul>
      {evidence.map((e, i) => (
        <li key={i} class="wrap">
          {e.fact} <span class="dim">[{e.from}]</span>
          {e.container && <> <a href={href("pod/logs", { namespace, name, container: e.container, previous: e.previous ? "1" : undefined })}>its last words</a></>}
        </li>
      ))}
    </ul>
  );
}

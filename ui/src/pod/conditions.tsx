// SPDX-License-Identifier: Apache-2.0

import type { Pod } from "../api/types";
import { useNow } from "../frame/clock";
import { href } from "../frame/router";
import { ageOf } from "../pods/age";
import { tainted } from "../record/entries";
import { filterBy } from "../record/filter";

/** Conditions are a pod's conditions as a table. */
export function Conditions({ pod }: { pod: Pod }) {
  const now = useNow();
  const conditions = pod.status?.conditions ?? [];
  return (
    <section class="card" aria-label="Conditions">
      <h2>Conditions</h2>
      {conditions.length === 0 && <p class="dim">None yet.</p>}
      <dl class="facts">
        {conditions.map((c) => (
          <div key={c.type}>
            <dt>{c.type}</dt>
            <dd>
              <span class={c.status === "True" ? "" : "tone-busy"}>{c.status}</span>
              {c.reason && c.status !== "True" && <span> {c.reason}</span>}
              <span class="dim"> {ageOf(c.lastTransitionTime, now)} ago</span>
              {c.message && <div class="dim wrap">{c.message}</div>}
              {c.type === tainted && <a href={href("record", { namespace: pod.metadata.namespace, filter: filterBy("pod", pod.metadata.name) })}>Who looked into this pod</a>}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

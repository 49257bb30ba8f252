// SPDX-License-Identifier: Apache-2.0

import type { Snapshot } from "../api/store";
import type { KubeEvent } from "../api/types";
import { Command } from "../frame/command";
import { useNow } from "../frame/clock";
import { Scroll } from "../frame/scroll";
import { ageOf } from "../pods/age";

/** lastOf is when an event happened last. */
export function lastOf(event: KubeEvent): string {
  return event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? "";
}

interface Properties {
  events: Snapshot<KubeEvent>;
  namespace: string;
  name: string;
  uid?: string;
}

/** Events are those about a pod, the newest first. */
export function Events({ events, namespace, name, uid }: Properties) {
  const now = useNow();
  const list = [...events.items.values()]
    .filter((e) => !uid || !e.involvedObject?.uid || e.involvedObject.uid === uid)
    .sort((a, b) => Date.parse(lastOf(b)) - Date.parse(lastOf(a)));
  return (
    <section class="card" aria-label="Events">
      <div class="card-head">
        <h2>Events</h2>
        <span class="fill" />
        <Command words={["wherry", "kubectl", "events", "-n", namespace, "--for", `pod/${name}`]} />
      </div>
      {events.problem && <p class="dim">They are not shown: {events.problem.message}</p>}
      {events.loaded && !events.problem && list.length === 0 && <p class="dim">None; a server keeps them for an hour.</p>}
      <Scroll label="What happened">
        <table>
          <tbody>
            {list.slice(0, 200).map((e) => (
              <tr key={e.metadata.name}>
                <td class="dim nowrap">{ageOf(lastOf(e), now)} ago{(e.series?.count ?? e.count ?? 1) > 1 ? ` ×${e.series?.count ?? e.count}` : ""}</td>
                <td class={e.type === "Warning" ? "strong tone-bad" : "strong"}>{e.reason}</td>
                <td class="wrap">{e.message}</td>
                <td class="dim nowrap">{e.reportingComponent || e.source?.component}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

// SPDX-License-Identifier: Apache-2.0

import type { Pod } from "../api/types";
import { href } from "../frame/router";

/** Facts are what a pod is. */
export function Facts({ pod }: { pod: Pod }) {
  const { metadata, spec = {}, status = {} } = pod;
  const owner = metadata.ownerReferences?.find((o) => o.controller);
  const facts: [string, string | undefined][] = [
    ["Node", spec.nodeName],
    ["IP", status.podIPs?.map((p) => p.ip).join(", ") || status.podIP],
    ["Owner", owner && `${owner.kind} ${owner.name}`],
    ["Service account", spec.serviceAccountName],
    ["Restart policy", spec.restartPolicy],
    ["Quality of service", status.qosClass],
    ["Priority class", spec.priorityClassName],
    ["Created", metadata.creationTimestamp && new Date(metadata.creationTimestamp).toLocaleString()],
    ["UID", metadata.uid],
  ];
  return (
    <section class="card" aria-label="Facts">
      <h2>Facts</h2>
      <dl class="facts">
        {facts.filter(([, value]) => value).map(([name, value]) => (
          <div key={name}><dt>{name}</dt><dd class="wrap">{value}</dd></div>
        ))}
        <div>
          <dt>Labels</dt>
          <dd class="labels">
            {Object.entries(metadata.labels ?? {}).map(([key, value]) => (
              <a key={key} class="label-chip" title="The pods that have this label too"
                href={href("pods", { namespace: metadata.namespace, filter: `${key}=${value}` })}>{key}={value}</a>
            ))}
            {!metadata.labels && <span class="dim">none</span>}
          </dd>
        </div>
      </dl>
    </section>
  );
}

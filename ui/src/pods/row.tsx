// SPDX-License-Identifier: Apache-2.0

import { memo } from "preact/compat";
import type { Pod } from "../api/types";
import { href } from "../frame/router";
import type { Row } from "./status";

interface Properties {
  id: string;
  index: number;
  pod: Pod;
  row: Row;
  chosen: boolean;
  namespaced: boolean;
  age: string;
  restarted: string;
}

/** PodRow is a pod as a line of the list. It is drawn again only when what it shows is another. */
export const PodRow = memo(function PodRow({ id, index, pod, row, chosen, namespaced, age, restarted }: Properties) {
  const { name, namespace } = pod.metadata;
  return (
    <div id={id} class={chosen ? "row chosen" : "row"} role="row" aria-rowindex={index} aria-selected={chosen}>
      {namespaced && <span role="gridcell" class="c-namespace">{namespace}</span>}
      <span role="gridcell" class="c-name"><a tabIndex={-1} href={href("pod", { namespace, name })}>{name}</a></span>
      <span role="gridcell" class="c-ready">{row.ready}/{row.containers}</span>
      <span role="gridcell" class="c-status">
        <StatusWord row={row} />
        {row.waitsFor && <span class="waits"> waits for {row.waitsFor}</span>}
      </span>
      <span role="gridcell" class="c-restarts">{row.restarts}{row.restarts > 0 && restarted ? ` (${restarted} ago)` : ""}</span>
      <span role="gridcell" class="c-age">{age}</span>
      <span role="gridcell" class="c-ip">{pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? ""}</span>
      <span role="gridcell" class="c-node">{pod.spec?.nodeName ?? ""}</span>
    </div>
  );
});

/** StatusWord is a status with its colour; the colour says nothing that the word does not. */
export function StatusWord({ row }: { row: Row }) {
  return <span class={`status tone-${row.tone}`}>{row.status}</span>;
}

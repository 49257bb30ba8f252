// SPDX-License-Identifier: Apache-2.0

import { useRef, useState } from "preact/hooks";
import { go, href } from "../frame/router";
import { show, Virtual } from "../frame/virtual";
import { kindOf } from "../object/kinds";
import { flatten, type Flat, type TreeNode } from "./tree";

const rowHeight = 30;

/** TreeView shows trees by the keys of a tree: up and down, right opens, left closes, Enter goes to what is chosen. */
export function TreeView({ nodes, label, empty, namespaced }: { nodes: TreeNode[]; label: string; empty: string; namespaced: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [chosen, choose] = useState("");
  const lines = flatten(nodes, closed);
  const index = Math.max(0, lines.findIndex((l) => l.node.key === chosen));
  const toggle = (node: TreeNode, open: boolean) => {
    const next = new Set(closed);
    if (open) {
      next.delete(node.key);
    } else {
      next.add(node.key);
    }
    setClosed(next);
  };
  const move = (to: number) => {
    const at = Math.max(0, Math.min(lines.length - 1, to));
    if (lines[at] && box.current) {
      choose(lines[at].node.key);
      show(box.current, at, rowHeight);
    }
  };
  const key = (event: KeyboardEvent) => {
    const line = lines[index];
    const to = { ArrowDown: chosen ? index + 1 : 0, ArrowUp: index - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (to !== undefined) {
      move(to);
    } else if (event.key === "ArrowRight" && line) {
      toggle(line.node, true);
    } else if (event.key === "ArrowLeft" && line) {
      toggle(line.node, false);
    } else if (event.key === "Enter" && line && hrefOf(line.node)) {
      go(hrefOf(line.node)!);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div ref={box} class="tree" role={lines.length > 0 ? "tree" : "region"} tabIndex={0} aria-label={label} onKeyDown={key} aria-activedescendant={chosen ? `tree-${index}` : undefined}>
      <Virtual box={box} rows={lines.length} rowHeight={rowHeight}>
        {(span) => lines.slice(span.from, span.to).map((line, i) => (
          <Line key={line.node.key} id={`tree-${span.from + i}`} line={line} chosen={line.node.key === chosen} namespaced={namespaced}
            toggle={() => { choose(line.node.key); toggle(line.node, !line.open); }} />
        ))}
      </Virtual>
      {lines.length === 0 && <p class="pad dim">{empty}</p>}
    </div>
  );
}

/** hrefOf is where one looks at a node: a pod by itself, others as YAML; undefined of what is no object. */
export function hrefOf({ pod, kind, namespace, name }: TreeNode): string | undefined {
  if (pod) {
    return href("pod", { namespace, name: pod.metadata.name });
  }
  return kindOf(kind) && href("object", { kind, namespace, name });
}

function Line({ id, line, chosen, namespaced, toggle }: { id: string; line: Flat; chosen: boolean; namespaced: boolean; toggle: () => void }) {
  const { node, level, open } = line;
  const to = hrefOf(node);
  return (
    <div id={id} class={chosen ? "tree-row chosen" : "tree-row"} role="treeitem" aria-level={level} aria-selected={chosen}
      aria-expanded={node.children.length > 0 ? open : undefined} style={{ paddingLeft: `${16 + (level - 1) * 22}px` }}>
      <span class="twist" aria-hidden="true" onClick={toggle}>{node.children.length > 0 ? (open ? "▾" : "▸") : ""}</span>
      <span class="dim kind">{node.kind}</span>
      {to ? <a tabIndex={-1} class="strong" href={to}>{node.name}</a> : <span class="strong">{node.name}</span>}
      {namespaced && level === 1 && <span class="dim">{node.namespace}</span>}
      <span class={`status tone-${node.tone}`}>{node.state}</span>
      <span class="dim">{node.why}</span>
    </div>
  );
}

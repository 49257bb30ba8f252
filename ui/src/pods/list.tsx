// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useList } from "../api/store";
import type { Pod } from "../api/types";
import { Command } from "../frame/command";
import { Page } from "../frame/context";
import { FilterField } from "../frame/filterfield";
import { useNow } from "../frame/clock";
import { useMedia } from "../frame/media";
import { Refused } from "../frame/notice";
import { go, href } from "../frame/router";
import { show, Virtual } from "../frame/virtual";
import { ageOf } from "./age";
import { matches, parseFilter, selectorOf } from "./filter";
import { PodRow } from "./row";
import { rowOf, type Row } from "./status";

/** Line is a pod of the list with what is said of it. */
export interface Line {
  pod: Pod;
  row: Row;
}

type SortKey = "name" | "status" | "restarts" | "age";

// What is said of a pod object does not change: a change is a new object.
const known = new WeakMap<Pod, Row>();

function lineOf(pod: Pod): Line {
  let row = known.get(pod);
  if (!row) {
    row = rowOf(pod);
    known.set(pod, row);
  }
  return { pod, row };
}

const urgency = { bad: 0, busy: 1, idle: 2, good: 3, done: 4 };

/** compare orders lines; pods that are alike in a column are in the order of their names. */
export function compare(a: Line, b: Line, key: SortKey): number {
  const [m, n] = [a.pod.metadata, b.pod.metadata];
  let order = 0;
  if (key === "status") {
    order = urgency[a.row.tone] - urgency[b.row.tone] || plain(a.row.status, b.row.status);
  } else if (key === "restarts") {
    order = b.row.restarts - a.row.restarts;
  } else if (key === "age") {
    order = plain(n.creationTimestamp ?? "", m.creationTimestamp ?? "");
  }
  return order || plain(m.namespace ?? "", n.namespace ?? "") || plain(m.name, n.name);
}

function plain(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** podsPath is the list of pods of a namespace, or of all. */
export function podsPath(namespace: string): string {
  return namespace ? `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods` : "/api/v1/pods";
}

/** PodsView is the live list of pods. */
export function PodsView({ at }: { at: URLSearchParams }) {
  const { stores } = useContext(Page);
  const namespace = at.get("namespace") ?? "";
  const text = at.get("filter") ?? "";
  const [sort, setSort] = useState<SortKey>("name");
  const { items, loaded, problem } = useList<Pod>(stores, { path: podsPath(namespace) });
  const filter = useMemo(() => parseFilter(text), [text]);
  const lines = useMemo(() => {
    const all = [...items.values()].map(lineOf);
    return all
      .filter(({ pod, row }) => matches(filter, pod, `${row.status} ${pod.spec?.nodeName ?? ""}`))
      .sort((a, b) => compare(a, b, sort));
  }, [items, filter, sort]);
  const setText = (value: string) => go(href("pods", { namespace, filter: value }), true);
  useEffect(() => {
    document.title = namespace ? `Pods of ${namespace} · Wherry` : "Pods · Wherry";
  }, [namespace]);
  return (
    <section class="pods" aria-label="Pods">
      <div class="bar">
        <h1>Pods</h1>
        <FilterField value={text} set={setText} label="Filter by text or labels" placeholder="Filter: web app=front  ( / )" />
        <Tally lines={lines} all={items.size} loaded={loaded} />
        <span class="fill" />
        <Command words={["wherry", "kubectl", "get", "pods", ...(namespace ? ["-n", namespace] : ["-A"]),
          selectorOf(filter) && "-l", selectorOf(filter), "-o", "wide"]} />
      </div>
      {problem ? <Refused problem={problem} what="The server does not show these pods" /> : (
        <Grid lines={lines} namespaced={!namespace} loaded={loaded} filtered={text !== ""} sort={sort} setSort={setSort} />
      )}
    </section>
  );
}

function Tally({ lines, all, loaded }: { lines: Line[]; all: number; loaded: boolean }) {
  const bad = lines.filter((l) => l.row.tone === "bad").length;
  const busy = lines.filter((l) => l.row.tone === "busy").length;
  if (!loaded) {
    return <span class="tally" role="status">Reading the list …</span>;
  }
  const shown = lines.length === all ? String(all) : `${lines.length} of ${all}`;
  return (
    <span class="tally" role="status">
      {shown} {lines.length === 1 && all === 1 ? "pod" : "pods"}
      {bad > 0 && <span class="tone-bad"> · {bad} in trouble</span>}
      {busy > 0 && <span class="tone-busy"> · {busy} on the way</span>}
    </span>
  );
}

interface GridProperties {
  lines: Line[];
  namespaced: boolean;
  loaded: boolean;
  filtered: boolean;
  sort: SortKey;
  setSort: (key: SortKey) => void;
}

const columns: [SortKey | "", string, string][] = [
  ["name", "Name", "c-name"], ["", "Ready", "c-ready"], ["status", "Status", "c-status"], ["restarts", "Restarts", "c-restarts"],
  ["age", "Age", "c-age"], ["", "IP", "c-ip"], ["", "Node", "c-node"],
];

function Grid({ lines, namespaced, loaded, filtered, sort, setSort }: GridProperties) {
  const box = useRef<HTMLDivElement>(null);
  const [chosen, choose] = useState("");
  const narrow = useMedia("(max-width: 760px)");
  const rowHeight = narrow ? 52 : 30;
  const now = useNow();
  const index = Math.max(0, lines.findIndex((l) => idOf(l.pod) === chosen));
  const move = (to: number) => {
    const line = lines[Math.max(0, Math.min(lines.length - 1, to))];
    if (line && box.current) {
      choose(idOf(line.pod));
      show(box.current, lines.indexOf(line), rowHeight, 30);
    }
  };
  const key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / rowHeight) - 2);
    const steps: Record<string, number> = {
      ArrowDown: chosen ? index + 1 : 0, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: lines.length - 1,
    };
    const to = steps[event.key];
    if (to !== undefined) {
      event.preventDefault();
      move(to);
    } else if (event.key === "Enter" && lines[index]) {
      event.preventDefault();
      open(lines[index].pod);
    }
  };
  return (
    <div ref={box} class={namespaced ? "grid namespaced" : "grid"} role="grid" tabIndex={0} aria-label="Pods" aria-rowcount={lines.length + 1}
      aria-activedescendant={chosen && lines[index] ? "pod-" + idOf(lines[index].pod) : undefined} onKeyDown={key}>
      <div class="row head" role="row" aria-rowindex={1}>
        {namespaced && <span role="columnheader" class="c-namespace">Namespace</span>}
        {columns.map(([by, title, name]) => (
          <span key={title} role="columnheader" class={name} aria-sort={by && by === sort ? "ascending" : undefined}>
            {by ? <button type="button" tabIndex={-1} onClick={() => setSort(by)}>{title}{by === sort ? " ▾" : ""}</button> : title}
          </span>
        ))}
      </div>
      <Virtual box={box} rows={lines.length} rowHeight={rowHeight}>
        {(span) => lines.slice(span.from, span.to).map((line, i) => (
          <PodRow key={idOf(line.pod)} id={"pod-" + idOf(line.pod)} index={span.from + i + 2} pod={line.pod} row={line.row}
            chosen={idOf(line.pod) === chosen} namespaced={namespaced}
            age={ageOf(line.pod.metadata.creationTimestamp, now)} restarted={ageOf(line.row.lastRestart, now)} />
        ))}
      </Virtual>
      {loaded && lines.length === 0 && <p class="pad dim">{filtered ? "No pod fits the filter." : "There are no pods here."}</p>}
    </div>
  );
}

function idOf(pod: Pod): string {
  return `${pod.metadata.namespace ?? ""}/${pod.metadata.name}`;
}

function open(pod: Pod): void {
  go(href("pod", { namespace: pod.metadata.namespace, name: pod.metadata.name }));
}

// SPDX-License-Identifier: Apache-2.0

import { useRef, useState } from "preact/hooks";
import { timeWords } from "../files/words";
import { Command } from "../frame/command";
import { useNow } from "../frame/clock";
import { useMedia } from "../frame/media";
import { go, href } from "../frame/router";
import { show, Virtual } from "../frame/virtual";
import { age } from "../pods/age";
import type { Entry } from "./entries";
import { filterBy } from "./filter";

interface Properties {
  entries: Entry[];
  namespaced: boolean; // the lines are of several namespaces
  empty: string;
  byUser: (user: string) => string | undefined; // the address that shows what a person did
}

const columns: [title: string, name: string][] = [
  ["When", "r-time"], ["Who", "r-user"], ["Pod", "r-pod"], ["How", "r-how"], ["What", "r-what"], ["Command", "r-command"], ["Took", "r-took"], ["End", "r-end"],
];

/** RecordGrid are the lines of the record. Of many only those that are seen are drawn; the chosen one is told in full below. */
export function RecordGrid({ entries, namespaced, empty, byUser }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const [chosen, choose] = useState("");
  const now = useNow();
  const rowHeight = useMedia("(max-width: 760px)") ? 52 : 30;
  const index = entries.findIndex((e) => e.key === chosen);
  const key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / rowHeight) - 2);
    const steps: Record<string, number> = {
      ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: entries.length - 1,
    };
    const to = steps[event.key];
    if (to !== undefined && entries.length > 0) {
      event.preventDefault();
      const place = Math.max(0, Math.min(entries.length - 1, to));
      choose(entries[place]!.key);
      show(box.current!, place, rowHeight, 30);
    } else if (event.key === "Enter" && index >= 0 && event.target === box.current) {
      event.preventDefault();
      go(podHref(entries[index]!));
    } else if (event.key === "Escape") {
      choose("");
    }
  };
  return (
    <>
      <div ref={box} class={namespaced ? "grid record-grid namespaced" : "grid record-grid"} role="grid" tabIndex={0} aria-label="Who looked into which pod"
        aria-rowcount={entries.length + 1} aria-activedescendant={index >= 0 ? `entry-${index}` : undefined} onKeyDown={key}>
        <div class="row head" role="row" aria-rowindex={1}>
          {columns.map(([title, name]) => <span key={name} role="columnheader" class={name}>{title}</span>)}
        </div>
        <Virtual box={box} rows={entries.length} rowHeight={rowHeight}>
          {(span) => entries.slice(span.from, span.to).map((e, i) => (
            <Line key={e.key} number={span.from + i} entry={e} now={now} chosen={e.key === chosen} namespaced={namespaced} byUser={byUser(e.user)}
              choose={() => choose(e.key === chosen ? "" : e.key)} />
          ))}
        </Virtual>
        {entries.length === 0 && <p class="pad dim">{empty}</p>}
      </div>
      {index >= 0 && <Whole entry={entries[index]!} now={now} close={() => choose("")} />}
    </>
  );
}

function podHref({ namespace, pod }: Entry): string {
  return href("pod", { namespace, name: pod });
}

interface LineProperties {
  number: number;
  entry: Entry;
  now: number;
  chosen: boolean;
  namespaced: boolean;
  byUser?: string;
  choose: () => void;
}

function Line({ number, entry: e, now, chosen, namespaced, byUser, choose }: LineProperties) {
  const at = Date.parse(e.at);
  const pick = (event: MouseEvent) => {
    if (!(event.target instanceof Element && event.target.closest("a"))) {
      choose();
    }
  };
  const look = ["row", chosen && "chosen", !e.user && "told"].filter(Boolean).join(" ");
  return (
    <div id={`entry-${number}`} class={look} role="row" aria-rowindex={number + 2} aria-selected={chosen} onClick={pick}>
      <span role="gridcell" class="r-time" title={Number.isNaN(at) ? "" : `${age(now - at)} ago`}>{timeWords(at)}</span>
      <span role="gridcell" class="r-user" title={e.user}>{byUser ? <a tabIndex={-1} href={byUser}>{e.user}</a> : e.user}</span>
      <span role="gridcell" class="r-pod" title={`${e.namespace}/${e.pod}`}>
        {namespaced && <span class="dim">{e.namespace}/</span>}<a tabIndex={-1} href={podHref(e)}>{e.pod}</a>
      </span>
      <span role="gridcell" class="r-how">{e.how}</span>
      <span role="gridcell" class="r-what" title={e.what}>{e.what}</span>
      <span role="gridcell" class="r-command mono">{e.command}</span>
      <span role="gridcell" class="r-took">{tookOf(e, now)}</span>
      <span role="gridcell" class={e.end ? `r-end status tone-${e.tone}` : "r-end"}>{e.end}</span>
    </div>
  );
}

/** tookOf is how long it ran, or has run so far. */
function tookOf({ from, to, end }: Entry, now: number): string {
  const began = Date.parse(from ?? "");
  return Number.isNaN(began) || (!to && end !== "running") ? "" : age((to ? Date.parse(to) : now) - began);
}

/** Whole tells a line in full, with the commands that show the same. */
function Whole({ entry: e, now, close }: { entry: Entry; now: number; close: () => void }) {
  const at = Date.parse(e.at);
  const filter = filterBy("pod", e.pod);
  return (
    <section class="log-whole" aria-label="The chosen line">
      <div class="card-head">
        <strong>{[e.how, e.user && `by ${e.user}`].filter(Boolean).join(" ")}</strong>
        <a href={podHref(e)}>{e.namespace}/{e.pod}</a>
        <span class="dim">{timeWords(at)}{Number.isNaN(at) ? "" : `, ${age(now - at)} ago`}</span>
        {filter && <a href={href("record", { namespace: e.namespace, filter })}>all of this pod</a>}
        <span class="fill" />
        {e.record && <Command words={["wherry", "kubectl", "get", "debugrun", e.record, "-n", e.namespace, "-o", "yaml"]} />}
        <button type="button" class="quiet" onClick={close}>Close</button>
      </div>
      <dl class="facts">
        {e.facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd class="wrap">{value}</dd></div>)}
      </dl>
    </section>
  );
}

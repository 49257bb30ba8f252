// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo } from "preact/hooks";
import { Command } from "../frame/command";
import { FilterField } from "../frame/filterfield";
import { Refused } from "../frame/notice";
import { go, href } from "../frame/router";
import { parseFilter } from "../pods/filter";
import { auditFor, commandFor, filterBy, fits, type Show } from "./filter";
import { RecordGrid } from "./grid";
import { useRecord } from "./use";

const shows: [Show, string][] = [["", "Who looked into pods"], ["pods", "Pods that were entered"]];

/** RecordView shows who looked into which pod, as it happens. */
export function RecordView({ at }: { at: URLSearchParams }) {
  const namespace = at.get("namespace") ?? "";
  const text = at.get("filter") ?? "";
  const show: Show = at.get("show") === "pods" ? "pods" : "";
  const { wherry, entries, loaded, problems } = useRecord(namespace, show);
  const filter = useMemo(() => parseFilter(text), [text]);
  const lines = useMemo(() => entries.filter((e) => fits(filter, e)), [entries, filter]);
  const to = (change: { filter?: string; show?: string }) => href("record", { namespace, filter: text, show, ...change });
  const byUser = (user: string) => {
    const by = filterBy("user", user);
    return by && to({ filter: by });
  };
  useEffect(() => {
    document.title = "Record · Wherry";
  }, []);
  const seen = problems.length === 0 || entries.length > 0;
  return (
    <section class="record" aria-label="Record">
      <div class="bar">
        <h1>Record</h1>
        {shows.map(([s, title]) => <button key={s} type="button" aria-pressed={s === show} onClick={() => go(to({ show: s }))}>{title}</button>)}
        <FilterField value={text} set={(value) => go(to({ filter: value }), true)} label="Filter by text, pod= or user=" placeholder="Filter: pod=web user=jane ( / )" />
        <span class="tally" role="status">{loaded ? tally(lines.length, entries.length) : "Reading the record …"}</span>
        <span class="fill" />
        <Command words={commandFor(namespace, filter, show, wherry !== false)} />
      </div>
      {problems.map(([what, problem]) => <Refused key={what} problem={problem} what={`The server does not show ${what}`} />)}
      {seen && <RecordGrid entries={lines} namespaced={!namespace} byUser={byUser} empty={!loaded ? "" : emptyWords(show, text !== "", wherry !== false)} />}
      <div class="note record-note">
        <span>{notes(show, wherry !== false)}</span>
        {wherry && <Command elsewhere words={auditFor(namespace, filter)} />}
      </div>
    </section>
  );
}

function tally(shown: number, all: number): string {
  return shown === all ? `${all} ${all === 1 ? "entry" : "entries"}` : `${shown} of ${all} entries`;
}

function emptyWords(show: Show, filtered: boolean, wherry: boolean): string {
  if (filtered) {
    return "Nothing fits the filter.";
  }
  if (show === "pods") {
    return "Nobody has entered a pod that is there.";
  }
  return wherry ? "Nobody has looked into a pod, as far as it is kept." : "Nobody has begun a debug session, as far as the cluster's events are kept.";
}

/** notes say how far back it goes, and what is not in it. */
function notes(show: Show, wherry: boolean): string {
  if (!wherry) {
    return "This cluster's events are the record of debug sessions, and are kept for an hour as a rule.";
  }
  if (show === "pods") {
    return "Each pod has the last time that somebody entered it. It goes with the pod; who debugged it stays. Every request, on the server's machine:";
  }
  return "Debugging stays on record for 30 days, also of pods that are gone; of plain exec only one that was the last into a pod is here. Every request, on the server's machine:";
}

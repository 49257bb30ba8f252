// SPDX-License-Identifier: Apache-2.0

import type { ComponentChildren } from "preact";
import { Refused } from "../frame/notice";
import type { Answer, Entry } from "./answer";
import { join, shown } from "./path";
import { imageOf, rootWords } from "./root";
import type { Talk } from "./talk";
import { useAnswer, type Asked } from "./use";
import { differenceWords, kindWords, sizeWords, timeWords } from "./words";

interface Properties {
  talk: Talk;
  root: string;
  path: string;
  hrefOf: (path: string, entry: Entry, root: string, other?: string) => string;
}

/** Changed is what was written in a container's filesystem since its run began, and which of its image's files are gone. */
export function Changed({ talk, root, path, hrefOf }: Properties) {
  const asked = useAnswer(talk, { do: "changed", root, path });
  return (
    <Found asked={asked} what="what changed" empty="Nothing was written here since this run began.">
      {(answer) => (
        <>
          <p class="note">Files below {shown(path)} that were written, deleted, or whose mode or owner changed, since this run of {root} began: the rest is the image's. Volumes are left out.
            What is deleted leads to what the image has.</p>
          <Table label={`Changed in ${root}`} head={["File", "What", "Size", "When", "In the image"]} rows={answer.files.map((e) => [
            <a href={hrefOf(join(path, e.name), e, e.gone ? imageOf(root) : root)}>{shown(e.name)}</a>,
            e.gone ? <span class="tone-bad">deleted {kindWords(e)}</span> : kindWords(e), sizeWords(e), e.gone ? "" : timeWords(e.changed),
            e.gone ? <a href={hrefOf(join(path, e.name), e, imageOf(root))}>what it was</a>
              : e.image ? <a href={hrefOf(join(path, e.name), e, root, imageOf(root))}>how it differs</a> : <span class="dim">new</span>])} />
        </>
      )}
    </Found>
  );
}

/** Compare is how the same folder of two containers differs. */
export function Compare({ talk, root, path, other, hrefOf }: Properties & { other: string }) {
  const asked = useAnswer(talk, { do: "compare", root, path, with: { root: other, path } });
  return (
    <Found asked={asked} what="how they differ" empty={`${shown(path)} is alike in both.`}>
      {(answer) => (
        <Table label={`Differences of ${rootWords(root)} and ${rootWords(other)}`} head={["File", "How it differs"]} rows={answer.differ.map((d) => [
          <a href={hrefOf(join(path, d.name), d.one ?? d.two!, d.one ? root : other)}>{shown(d.name)}{(d.one ?? d.two!).kind === "d" ? "/" : ""}</a>,
          differenceWords(d, root, other)])} />
      )}
    </Found>
  );
}

interface FoundProperties {
  asked: Asked;
  what: string;
  empty: string;
  children: (answer: Answer) => ComponentChildren;
}

function Found({ asked, what, empty, children }: FoundProperties) {
  if (asked.problem) {
    return <Refused problem={asked.problem} what={`It cannot be said ${what}`} />;
  }
  if (!asked.answer) {
    return <p class="pad dim" role="status">Looking at the files …</p>;
  }
  const { more, notes, visited, files, differ } = asked.answer;
  return (
    <div class="found">
      <p class="note" role="status">{visited.toLocaleString()} {visited === 1 ? "file was" : "files were"} looked at, {(files.length + differ.length).toLocaleString()} found. {more && <strong>{more}.</strong>}</p>
      {notes.slice(0, 20).map((n) => <p key={n} class="note">{n}</p>)}
      {files.length + differ.length > 0 ? children(asked.answer) : <p class="pad">{empty}</p>}
    </div>
  );
}

function Table({ label, head, rows }: { label: string; head: string[]; rows: ComponentChildren[][] }) {
  return (
    <div class="found-list scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr>{head.map((h) => <th key={h}>{h}</th>)}</tr></thead>
        <tbody>{rows.map((row, i) => <tr key={i}>{row.map((cell, j) => <td key={j} class={j === 0 ? "wrap" : undefined}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

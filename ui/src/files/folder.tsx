// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useMedia } from "../frame/media";
import { show, Virtual } from "../frame/virtual";
import type { Answer, Entry } from "./answer";
import { shown } from "./path";
import { inOrder, kindWords, modeWords, ownerWords, sizeWords, timeWords } from "./words";

interface Properties {
  answer: Answer;
  path: string;
  hrefOf: (entry: Entry) => string;
  open: (entry: Entry) => void;
  up: () => void;
  download: (entry: Entry) => void;
}

/** canOpen reports whether there is something to be seen in a file. */
export function canOpen(e: Entry): boolean {
  return !e.kernel && (e.folder || e.kind === "f" || e.kind === "l");
}

/** Folder is what is in a folder. Of many files only those that are seen are drawn. */
export function Folder({ answer, path, hrefOf, open, up, download }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const files = useMemo(() => inOrder(answer.files), [answer]);
  const [chosen, choose] = useState("");
  const rowHeight = useMedia("(max-width: 760px)") ? 52 : 30;
  const index = files.findIndex((f) => f.name === chosen);
  useEffect(() => {
    choose("");
    if (box.current) {
      box.current.scrollTop = 0;
    }
  }, [path]);
  const key = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / rowHeight) - 2);
    const steps: Record<string, number> = {
      ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: files.length - 1,
    };
    const to = steps[event.key];
    const entry = files[index];
    if (to !== undefined && files.length > 0) {
      event.preventDefault();
      const place = Math.max(0, Math.min(files.length - 1, to));
      choose(files[place]!.name);
      show(box.current!, place, rowHeight, 30);
    } else if (event.key === "Enter" && entry && canOpen(entry) && event.target === box.current) {
      event.preventDefault();
      open(entry);
    } else if (event.key === "Backspace") {
      event.preventDefault();
      up();
    } else if (event.key === "d" && !event.ctrlKey && !event.metaKey && !event.altKey && entry && canOpen(entry)) {
      event.preventDefault();
      download(entry);
    }
  };
  return (
    <div ref={box} class="grid files-grid" role="grid" tabIndex={0} aria-label={`Files of ${shown(path)}`} aria-rowcount={files.length + 1}
      aria-activedescendant={index >= 0 ? `file-${index}` : undefined} onKeyDown={key}>
      <div class="row head" role="row" aria-rowindex={1}>
        {["Name", "Size", "Mode", "Owner", "Changed", ""].map((title) => (
          <span key={title} role="columnheader">{title || <span class="hidden-text">Download</span>}</span>
        ))}
      </div>
      <Virtual box={box} rows={files.length} rowHeight={rowHeight}>
        {(span) => files.slice(span.from, span.to).map((entry, i) => (
          <FileRow key={entry.name} number={span.from + i} entry={entry} answer={answer} chosen={entry.name === chosen} to={hrefOf(entry)} download={download} />
        ))}
      </Virtual>
      {files.length === 0 && <p class="pad dim">There is nothing in this folder.</p>}
    </div>
  );
}

interface RowProperties {
  number: number;
  entry: Entry;
  answer: Answer;
  chosen: boolean;
  to: string;
  download: (entry: Entry) => void;
}

function FileRow({ number, entry, answer, chosen, to, download }: RowProperties) {
  const name = shown(entry.name) + (entry.kind === "d" ? "/" : "");
  return (
    <div id={`file-${number}`} class={chosen ? "row chosen" : "row"} role="row" aria-rowindex={number + 2} aria-selected={chosen}>
      <span role="gridcell" class="f-name" title={`${name}: ${kindWords(entry)}`}>
        {canOpen(entry) ? <a tabIndex={-1} href={to}>{name}</a> : name}
        {entry.to && <span class="dim"> → {shown(entry.to)}</span>}
        {entry.kernel && <span class="dim"> the kernel's</span>}
        {entry.mount && <span class="dim"> volume</span>}
      </span>
      <span role="gridcell" class="f-size">{sizeWords(entry)}</span>
      <span role="gridcell" class="f-mode mono">{modeWords(entry)}</span>
      <span role="gridcell" class="f-owner">{ownerWords(entry, answer.users, answer.groups)}</span>
      <span role="gridcell" class="f-time">{timeWords(entry.time)}</span>
      <span role="gridcell" class="f-get">
        {canOpen(entry) && <button type="button" class="quiet" tabIndex={-1} aria-label={`Download ${name}`} title={entry.kind === "d" ? "Download as a tar archive" : "Download"}
          onClick={() => download(entry)}>↓</button>}
      </span>
    </div>
  );
}

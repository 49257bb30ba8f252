// SPDX-License-Identifier: Apache-2.0

import { useRef, useState } from "preact/hooks";
import type { Pod } from "../api/types";
import { useWherry } from "../api/wherry";
import { useNow } from "../frame/clock";
import { Command } from "../frame/command";
import { Refused } from "../frame/notice";
import { go, href } from "../frame/router";
import { boxesOf, stateWords, type Box } from "../pod/containers";
import type { Entry } from "./answer";
import { commandFor, type Show } from "./command";
import { FileView } from "./file";
import { Folder } from "./folder";
import { Changed, Compare } from "./lists";
import { clean, crumbs, join, last, parent, shown, typed } from "./path";
import { besideOf, containerOf, imageOf, isImage, rootWords } from "./root";
import { Transfers, Upload, useTransfers } from "./transfers";
import { useAnswer, useTalk } from "./use";

/** FilesView shows the files of a pod's containers, of those that have ended, too. */
export function FilesView({ pod, at }: { pod: Pod; at: URLSearchParams }) {
  const wherry = useWherry();
  if (wherry === undefined) {
    return <p class="pad dim" role="status">Asking the server …</p>;
  }
  if (!wherry) {
    return <p class="pad">This server has no image exec, by which the page looks at files; kubectl cp copies them out of containers that run and have tar.</p>;
  }
  return <Files pod={pod} at={at} />;
}

const shows: [Show, string][] = [["", "Files"], ["changed", "What changed"]];

function Files({ pod, at }: { pod: Pod; at: URLSearchParams }) {
  const { namespace = "default", name, uid = "" } = pod.metadata;
  const boxes = boxesOf(pod).filter((b) => b.status?.containerID);
  const root = at.get("container") || (boxes.find((b) => b.kind === "main") ?? boxes[0])?.spec.name || "";
  const [container, image] = [containerOf(root), isImage(root)];
  const path = clean(at.get("path") ?? "/");
  const other = at.get("with") ?? "";
  const isFile = at.get("file") === "1";
  const show: Show = at.get("show") === "changed" && !isFile && !image ? "changed" : "";
  const [turn, setTurn] = useState(0);
  const place = { namespace, pod: name, container };
  const talk = useTalk(place, uid, turn);
  const transfers = useTransfers(place);
  const to = (change: Record<string, string | undefined>) => href("pod/files", { namespace, name, container: root, path: path === "/" ? undefined : path, with: other || undefined, show: show || undefined, file: isFile ? "1" : undefined, ...change });
  const fileHref = (p: string, e: Entry, of = root, beside = of === root ? other : "") => to({ container: of, path: p, file: e.folder ? undefined : "1", show: undefined, with: beside || undefined });
  const running = boxes.find((b) => b.spec.name === container);
  const list = useAnswer(talk, !isFile && !other && show === "" && container ? { do: "list", root, path } : null);
  if (!container) {
    return <p class="pad">No container of this pod has run yet: there are no files.</p>;
  }
  const command = commandFor({ namespace, pod: name, container: root, path, other, isFile, show, startedAt: running?.status?.state?.running?.startedAt ?? running?.status?.state?.terminated?.startedAt });
  return (
    <section class="files" aria-label="Files">
      <div class="bar">
        <Choice label="Container" value={container} boxes={boxes} set={(c) => go(to({ container: c, with: besideOf(c, other) }))} />
        <Choice label="Compare with" none="nothing" value={other} others={image ? [container] : [imageOf(container)]} boxes={boxes.filter((b) => b.spec.name !== container)} set={(c) => go(to({ with: c || undefined, show: undefined }))} />
        {!isFile && !other && !image && shows.map(([s, title]) => <button key={s} type="button" aria-pressed={s === show} onClick={() => go(to({ show: s || undefined }))}>{title}</button>)}
        <button type="button" title="Look anew, also at a run that has begun since" onClick={() => setTurn((n) => n + 1)}>Look again</button>
        <button type="button" onClick={() => transfers.get(root, path, last(path), !isFile)}>{isFile ? "Download" : "Download folder"}</button>
        {list.answer && !image && <Upload files={list.answer.files} put={(file, over) => transfers.put(container, path, file, over, () => setTurn((n) => n + 1))} />}
        <span class="fill" />
        <Command words={command} />
      </div>
      <Path path={path} to={(p) => to({ path: p, file: undefined })} />
      {image && <p class="note" role="status">These are the files of the image of {container}, as they were before it wrote. <a href={to({ container, with: undefined })}>Those of {container}</a></p>}
      <WhichRun box={running} talk={talk} turn={turn} anew={() => setTurn((n) => n + 1)} />
      <Transfers list={transfers.list} forget={transfers.forget} />
      {isFile && <FileView key={root + path + other} talk={talk} root={root} path={path} other={other} />}
      {!isFile && other && <Compare talk={talk} root={root} path={path} other={other} hrefOf={fileHref} />}
      {!isFile && !other && show === "changed" && <Changed talk={talk} root={container} path={path} hrefOf={fileHref} />}
      {list.problem && <Refused problem={list.problem} what={`${shown(path)} of ${rootWords(root)} cannot be shown`} />}
      {list.answer && list.answer.more && <p class="note">{list.answer.more}.</p>}
      {list.answer?.notes.slice(0, 10).map((n) => <p key={n} class="note">{n}</p>)}
      {list.answer && (
        <Folder answer={list.answer} path={path} hrefOf={(e) => fileHref(join(path, e.name), e)} open={(e) => go(fileHref(join(path, e.name), e))}
          up={() => go(to({ path: parent(path) }))} download={(e) => transfers.get(root, join(path, e.name), e.name, e.folder)} />
      )}
      {!isFile && !other && show === "" && !list.answer && !list.problem && <p class="pad dim" role="status">Opening the container's files …</p>}
    </section>
  );
}

function Choice({ label, none, value, others = [], boxes, set }: { label: string; none?: string; value: string; others?: string[]; boxes: Box[]; set: (name: string) => void }) {
  const now = useNow();
  return (
    <label class="namespace files-choice"><span>{label}</span>
      <select aria-label={label} value={value} onChange={(e) => set(e.currentTarget.value)}>
        {none && <option value="">{none}</option>}
        {others.map((root) => <option key={root} value={root}>{rootWords(root)}</option>)}
        {boxes.map((b) => <option key={b.spec.name} value={b.spec.name}>{b.spec.name} ({stateWords(b, now).text})</option>)}
      </select>
    </label>
  );
}

/** Path is where one is, with the way back, and a field to go elsewhere. */
function Path({ path, to }: { path: string; to: (path: string) => string }) {
  const field = useRef<HTMLInputElement>(null);
  const leave = (event: Event) => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? "";
    if (text) {
      go(to(text.startsWith("/") ? typed(text) : clean(path + typed(text))));
      field.current!.value = "";
    }
  };
  return (
    <div class="path">
      <nav aria-label="Path">
        {crumbs(path).map((c, i, all) => (
          <span key={c.path}>{i > 1 && <span class="dim">/</span>}<a href={to(c.path)} aria-current={i === all.length - 1 ? "location" : undefined}>{i === 0 ? "/" : shown(c.name)}</a></span>
        ))}
      </nav>
      <form onSubmit={leave}><input ref={field} aria-label="Go to a folder" placeholder="Go to /folder" spellcheck={false} autocapitalize="off" /></form>
    </div>
  );
}

/** WhichRun says which run of the container is looked at, and when there is another one. */
function WhichRun({ box, talk, turn, anew }: { box?: Box; talk: ReturnType<typeof useTalk>; turn: number; anew: () => void }) {
  const asked = useAnswer(talk, { do: "containers" }, turn);
  const run = box && asked.answer?.runs[box.spec.name];
  if (!run || !box) {
    return null;
  }
  const now = box.status?.state?.running || box.status?.state?.terminated ? box.status.restartCount ?? 0 : run.attempt;
  if (now > run.attempt) {
    return <p class="note" role="status">These are the files of run {run.attempt + 1}; run {now + 1} has begun since. <button type="button" class="quiet" onClick={anew}>Look at that one</button></p>;
  }
  return <p class="note">{run.state === "running" ? "It runs" : "It has ended; its files are kept until it starts anew or the pod is removed"}{run.attempt > 0 ? `: run ${run.attempt + 1}` : ""}.</p>;
}

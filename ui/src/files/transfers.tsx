// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef, useState } from "preact/hooks";
import { save } from "../life/export";
import { bytes } from "../machine/quantity";
import type { Entry } from "./answer";
import { escapeName, shown } from "./path";
import { Talk, type Place } from "./talk";
import { download, upload } from "./transfer";

/** Transfer is a file on its way, or what came of it. */
export interface Transfer {
  title: string;
  words: string;
  state: "going" | "done" | "failed";
  stop: () => void;
}

/** useTransfers are those of a view; they end with it. */
export function useTransfers(place: Place) {
  const [list, setList] = useState<Transfer[]>([]);
  const all = useRef(new Set<() => void>());
  useEffect(() => () => all.current.forEach((stop) => stop()), []);
  const begin = (title: string, stop: () => void) => {
    const transfer: Transfer = { title, words: "waiting for the pod …", state: "going", stop };
    all.current.add(stop);
    const change = (part: Partial<Transfer>) => {
      Object.assign(transfer, part);
      if (part.state) {
        all.current.delete(stop);
      }
      setList((l) => [...l]);
    };
    setList((l) => [...l, transfer]);
    return {
      change,
      progress: (done: number, total: number) => change({ words: Number.isFinite(total) ? `${bytes(done)} of ${bytes(total)}` : bytes(done) }),
    };
  };
  const get = (root: string, path: string, name: string, folder: boolean) => {
    const talk = new Talk(place);
    const file = (shown(name) || root) + (folder ? ".tar" : "");
    const { change, progress } = begin(`Download of ${file}`, () => talk.close());
    download(talk, root, path, folder, progress).then(({ blob, notes }) => {
      save(file, "application/octet-stream", [blob]);
      change({ state: "done", words: [`${bytes(blob.size)} came`, ...notes.slice(0, 5)].join("; ") });
    }, (error: Error) => change({ state: "failed", words: error.message })).finally(() => talk.close());
  };
  const put = (root: string, path: string, file: File, over: boolean, done: () => void) => {
    const stop = new AbortController();
    const { change, progress } = begin(`Upload of ${file.name}`, () => stop.abort());
    upload(place, root, path, file, over, progress, stop.signal).then(() => {
      change({ state: "done", words: `${bytes(file.size)} written to ${shown(path)}` });
      done();
    }, (error: Error) => change({ state: "failed", words: error.message }));
  };
  const forget = (transfer: Transfer) => setList((l) => l.filter((t) => t !== transfer));
  return { list, get, put, forget };
}

/** Transfers show how far they are. */
export function Transfers({ list, forget }: { list: Transfer[]; forget: (transfer: Transfer) => void }) {
  return (
    <ul class="transfers" aria-label="Files on their way" aria-live="polite">
      {list.map((t) => (
        <li key={t.title + list.indexOf(t)} class="note">
          <span class={t.state === "failed" ? "bad" : ""}>{t.title}: {t.words}</span>
          {t.state === "going" ? <button type="button" class="quiet" onClick={t.stop}>Call off</button> : <button type="button" class="quiet" onClick={() => forget(t)}>Close</button>}
        </li>
      ))}
    </ul>
  );
}

interface UploadProperties {
  files: Entry[]; // that are in the folder
  put: (file: File, over: boolean) => void;
}

/** Upload takes a file of the reader's; one that would take another's place is asked about first. */
export function Upload({ files, put }: UploadProperties) {
  const field = useRef<HTMLInputElement>(null);
  const [asked, ask] = useState<File | null>(null);
  const take = (list: FileList | null) => {
    const file = list?.[0];
    if (file && files.some((f) => f.name === escapeName(file.name) || shown(f.name) === file.name)) {
      ask(file);
    } else if (file) {
      put(file, false);
    }
  };
  return (
    <>
      <input ref={field} type="file" class="hidden" aria-label="A file to upload" tabIndex={-1} onChange={(e) => { take(e.currentTarget.files); e.currentTarget.value = ""; }} />
      <button type="button" onClick={() => field.current?.click()}>Upload …</button>
      {asked && (
        <span class="ask" role="alert">
          {asked.name} is there already.
          <button type="button" onClick={() => { put(asked, true); ask(null); }}>Replace it</button>
          <button type="button" class="quiet" onClick={() => ask(null)}>Keep it</button>
        </span>
      )}
    </>
  );
}

// SPDX-License-Identifier: Apache-2.0

import { useMemo } from "preact/hooks";
import { Refused } from "../frame/notice";
import { bytes } from "../machine/quantity";
import type { Answer, Entry } from "./answer";
import { contentOf, textOf } from "./content";
import { diff, rowsOf } from "./diff";
import { shown } from "./path";
import { rootWords } from "./root";
import type { Talk } from "./talk";
import { useAnswer } from "./use";
import { modeWords, timeWords } from "./words";

/** How much of a file is shown; all of it can be downloaded. */
export const mostShown = 512 << 10;

interface Properties {
  talk: Talk;
  root: string;
  path: string;
  other: string; // the container to compare with, or ""
}

/** FileView is one file's contents, as text or in hexadecimal, or how two containers' differ. */
export function FileView({ talk, root, path, other }: Properties) {
  const one = useAnswer(talk, { do: "read", root, path, most: mostShown });
  const two = useAnswer(talk, other ? { do: "read", root: other, path, most: mostShown } : null);
  const problem = one.problem ?? two.problem;
  if (problem) {
    return <Refused problem={problem} what={`${shown(path)} cannot be shown`} />;
  }
  if (!one.answer?.file || (other && !two.answer?.file)) {
    return <p class="pad dim" role="status">Reading …</p>;
  }
  if (other) {
    return <Compared one={one.answer} two={two.answer!} names={[root, other]} path={path} />;
  }
  return <Contents answer={one.answer} file={one.answer.file} path={path} />;
}

function Contents({ answer, file, path }: { answer: Answer; file: Entry; path: string }) {
  const data = answer.data ?? new Uint8Array();
  const cut = file.size > data.length;
  const content = useMemo(() => contentOf(data, cut), [answer]);
  return (
    <div class="file">
      <p class="note">
        {bytes(file.size)}, {modeWords(file)}, {file.uid}:{file.gid}, changed {timeWords(file.time)}
        {content.binary ? "; not text: its first bytes" : cut ? `; the first ${bytes(data.length)} of it` : ""}
        {file.size > 0 || content.text ? "" : "; it is empty"}
      </p>
      <pre class="file-text" tabIndex={0} aria-label={`Contents of ${shown(path)}`}>{content.text}</pre>
    </div>
  );
}

const signs = { "-": "one", "+": "two", " ": "both", "…": "more" } as const;

function Compared({ one, two, names, path }: { one: Answer; two: Answer; names: [string, string]; path: string }) {
  const rows = useMemo(() => {
    const texts = [one, two].map((a) => textOf(a.data ?? new Uint8Array(), (a.file?.size ?? 0) > (a.data?.length ?? 0)));
    return texts[0] === null || texts[1] === null ? null : rowsOf(diff(texts[0]!, texts[1]!));
  }, [one, two]);
  const [a, b] = [one.data ?? new Uint8Array(), two.data ?? new Uint8Array()];
  const alike = a.length === b.length && a.every((byte, i) => byte === b[i]);
  const cut = one.file!.size > a.length || two.file!.size > b.length;
  const words = alike ? (cut ? "as far as they were read, both are alike" : "both are alike") : rows ? `− ${rootWords(names[0])}, + ${rootWords(names[1])}` : "they differ, and are not text";
  return (
    <div class="file">
      <p class="note" role="status">{shown(path)}: {bytes(one.file!.size)} in {rootWords(names[0])}, {bytes(two.file!.size)} in {rootWords(names[1])}; {words}
        {cut && !alike ? `; only the first ${bytes(mostShown)} of each were compared` : ""}</p>
      {rows && !alike && (
        <pre class="file-text diff" tabIndex={0} aria-label="Differences">
          {rows.map((r, i) => <span key={i} class={`diff-${signs[r.sign]}`}>{`${r.sign} ${r.text}`}</span>)}
        </pre>
      )}
    </div>
  );
}

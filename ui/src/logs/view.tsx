// SPDX-License-Identifier: Apache-2.0

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { upstream } from "../api/client";
import type { Pod } from "../api/types";
import { typing } from "../frame/app";
import { Command } from "../frame/command";
import { go, href } from "../frame/router";
import { save } from "../life/export";
import { boxesOf } from "../pod/containers";
import { LogList } from "./list";
import { logPath } from "./stream";
import { useLogs } from "./use";
import { Finder } from "./window";

const amounts: [string, number | undefined][] = [["last 1,000 lines", 1000], ["last 20,000 lines", 20_000], ["all", undefined]];

/** LogsView shows the logs of one container of a pod or of all, in the order of their times. */
export function LogsView({ pod, at }: { pod: Pod; at: URLSearchParams }) {
  const namespace = pod.metadata.namespace ?? "default";
  const name = pod.metadata.name;
  const boxes = boxesOf(pod);
  const container = at.get("container") ?? "";
  const chosen = boxes.filter((b) => (container ? b.spec.name === container : b.kind !== "debug"));
  const wanted = moment(at, chosen[0]?.status?.restartCount ?? 0);
  const [amount, setAmount] = useState(0);
  const [times, setTimes] = useState(true);
  const [folded, setFolded] = useState(true);
  const [follow, setFollow] = useState(!wanted.at);
  const [text, setText] = useState("");
  const [only, setOnly] = useState(false);
  const previous = at.get("previous") === "1" || wanted.previous;
  const side = at.get("side") === "1" && chosen.length > 1;
  const { window: logs, problems } = useLogs({
    namespace, pod: name, uid: pod.metadata.uid ?? "", boxes: chosen, previous, tail: wanted.since ? undefined : amounts[amount]![1], since: wanted.since,
  });
  const finder = useMemo(() => new Finder(), []);
  const found = useMemo(() => finder.find(logs.entries, text), [text, logs.version, logs]);
  const entries = useMemo(() => (only && text ? found.map((i) => logs.entries[i]!) : logs.entries), [only, text, found, logs.version]);
  const places = only ? [] : found;
  const show = (change: Record<string, string | undefined>) => go(href("pod/logs", { namespace, name, container, previous: previous ? "1" : undefined, side: side ? "1" : undefined, ...change }), true);
  const download = () => {
    const lines = entries.map((e) => `${Number.isFinite(e.at) ? new Date(e.at).toISOString() : ""} ${e.container} ${e.text}\n`);
    save(`${name}.log`, "text/plain", lines);
  };
  return (
    <section class="logs" aria-label="Logs">
      <div class="bar">
        <select aria-label="Container" value={container} onChange={(e) => show({ container: e.currentTarget.value, previous: undefined })}>
          <option value="">all containers, by time</option>
          {boxes.map((b) => <option key={b.spec.name} value={b.spec.name}>{b.kind === "main" ? "" : b.kind + " "}{b.spec.name}</option>)}
        </select>
        <select aria-label="How much" value={amount} disabled={wanted.since !== undefined} onChange={(e) => setAmount(Number(e.currentTarget.value))}>
          {amounts.map(([title], i) => <option key={title} value={i}>{title}</option>)}
        </select>
        <Search text={text} set={setText} count={found.length} />
        <Switch on={only} set={setOnly} title="Only matches" />
        <Switch on={follow} set={setFollow} title="Follow" />
        <Switch on={times} set={setTimes} title="Times" />
        <Switch on={folded} set={setFolded} title="Fold JSON" />
        {chosen.length > 1 && <Switch on={side} set={(on) => show({ side: on ? "1" : undefined })} title="Side by side" />}
        <Switch on={previous} set={(on) => show({ previous: on ? "1" : undefined })} title="Run before" />
        {container
          ? <a class="button" download={`${name}-${container}.log`} href={upstream + logPath({ namespace, pod: name, container, previous, follow: false })}>Download</a>
          : <button type="button" onClick={download}>Download</button>}
        <span class="fill" />
        <Command words={["wherry", "kubectl", "logs", name, "-n", namespace, ...(container ? ["-c", container] : ["--all-containers", "--prefix"]),
          ...(previous ? ["--previous"] : ["-f"]), ...(times ? ["--timestamps"] : [])]} />
      </div>
      {wanted.words && <p class="note">{wanted.words}{" "}
        <a href={href("pod/logs", { namespace, name, container })}>Show the present log</a></p>}
      {problems.map((p) => <p key={p} class="note" role="status">{p}</p>)}
      {logs.dropped > 0 && <p class="note">{logs.dropped.toLocaleString()} earlier lines are not shown; Download of one container has all.</p>}
      <LogList key={container + previous} entries={entries} version={logs.version} dropped={logs.dropped} many={chosen.length > 1} names={chosen.map((b) => b.spec.name)} side={side} times={times}
        folded={folded} text={text} places={places} follow={follow} setFollow={setFollow} at={wanted.at} />
    </section>
  );
}

/** moment is the one that a click in the pod's life has asked for. */
function moment(at: URLSearchParams, restarts: number): { at?: number; since?: string; previous: boolean; words: string } {
  const ms = Date.parse(at.get("at") ?? "");
  if (Number.isNaN(ms)) {
    return { previous: false, words: "" };
  }
  const attempt = Number(at.get("attempt") ?? restarts);
  const behind = at.get("container") ? restarts - attempt : 0;
  const when = new Date(ms).toLocaleTimeString();
  if (behind > 1) {
    return { at: ms, previous: true, words: `The log of attempt ${attempt} is no longer kept; this is that of the last run before the present one.` };
  }
  return { at: ms, since: new Date(ms - 60_000).toISOString().replace(/\.\d+/, ""), previous: behind === 1, words: `From a minute before ${when} on.` };
}

function Search({ text, set, count }: { text: string; set: (text: string) => void; count: number }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key === "/" && !typing(event.target)) {
        event.preventDefault();
        field.current?.focus();
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  const jump = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === "Escape") {
      event.preventDefault();
      const list = document.querySelector<HTMLElement>(".log-list");
      if (event.key === "Escape") {
        list?.focus();
      } else {
        list?.dispatchEvent(new CustomEvent("wherry-find", { detail: event.shiftKey ? -1 : 1 }));
      }
    }
  };
  return (
    <span class="search">
      <input ref={field} type="search" value={text} placeholder="Search ( / )" aria-label="Search the log; Enter goes to the next match" spellcheck={false}
        onInput={(e) => set(e.currentTarget.value)} onKeyDown={jump} />
      <span class="dim" role="status">{text ? count.toLocaleString() : ""}</span>
    </span>
  );
}

function Switch({ on, set, title }: { on: boolean; set: (on: boolean) => void; title: string }) {
  return <button type="button" aria-pressed={on} onClick={() => set(!on)}>{title}</button>;
}

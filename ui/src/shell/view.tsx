// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { kube, podPath } from "../api/client";
import { useRight } from "../api/rights";
import type { Pod } from "../api/types";
import { useWherry } from "../api/wherry";
import { Command } from "../frame/command";
import { Page } from "../frame/context";
import { boxesOf, type Box } from "../pod/containers";
import { Session } from "./session";
import { running, takeUp, waysInto, type Rights, type Way } from "./ways";

const profiles = ["general", "baseline", "restricted", "netadmin", "sysadmin"];

function useRights(namespace: string, name: string): Rights {
  const wherry = useWherry();
  return {
    exec: useRight({ namespace, name, verb: "create", resource: "pods", subresource: "exec" }),
    attach: useRight({ namespace, name, verb: "create", resource: "pods", subresource: "attach" }),
    debug: useRight({ namespace, name, verb: "update", resource: "pods", subresource: "ephemeralcontainers" }),
    imageExec: useRight({ namespace, verb: "create", resource: "imageexecs", group: "debug.wherry.dev" }),
    wherry,
  };
}

/** ShellView opens shells in a pod, and shows those that are open. */
export function ShellView({ pod, at }: { pod: Pod; at: URLSearchParams }) {
  const { sessions } = useContext(Page);
  const namespace = pod.metadata.namespace ?? "default";
  const name = pod.metadata.name;
  const rights = useRights(namespace, name);
  const [container, setContainer] = useState(at.get("container") ?? "");
  const [profile, setProfile] = useState("general");
  const [, redraw] = useState(0);
  const [chosen, choose] = useState<Session | null>(() => sessions.of(namespace, name).at(-1) ?? null);
  const [opening, setOpening] = useState(false);
  const [unloaded, setUnloaded] = useState(false);
  const open = async (way: Way) => {
    setOpening(true); // a second press of the same key is not a second shell
    const terminal = await import("./terminal").catch(() => null).finally(() => setOpening(false));
    setUnloaded(!terminal); // of a page that was opened before the server was updated, or while the server is away
    if (!terminal) {
      return;
    }
    const { makeScreen } = terminal;
    const session = new Session(way.wish, makeScreen(() => document.querySelector<HTMLElement>(".session-bar button")?.focus()));
    sessions.add(session);
    choose(session);
    session.connect();
  };
  const close = (session: Session) => {
    sessions.close(session);
    choose(sessions.of(namespace, name).at(-1) ?? null);
    redraw((n) => n + 1);
  };
  // What is offered comes at once: a button that moves as another one comes is missed by the one who clicks it.
  const asking = Object.values(rights).includes(undefined);
  const ways = asking ? [] : waysInto(pod, rights, container, profile);
  const debuggers = boxesOf(pod).filter((b) => b.kind === "debug" && b.status?.state?.running);
  const open1 = sessions.of(namespace, name);
  return (
    <section class="shell" aria-label="Shell">
      <div class="bar">
        <label class="namespace"><span>Container</span>
          <select value={container} onChange={(e) => setContainer(e.currentTarget.value)}>
            <option value="">first that runs</option>
            {running(pod).filter((b) => b.kind !== "debug").map((b) => <option key={b.spec.name} value={b.spec.name}>{b.spec.name}</option>)}
          </select>
        </label>
        {!asking && rights.debug && rights.wherry && (
          <label class="namespace"><span>Profile</span>
            <select value={profile} onChange={(e) => setProfile(e.currentTarget.value)}>{profiles.map((p) => <option key={p} value={p}>{p}</option>)}</select>
          </label>
        )}
        {ways.map((w) => <button key={w.id} type="button" title={w.help} disabled={opening} onClick={() => void open(w)}>{w.title}</button>)}
        {asking && <span class="dim">Asking the server what you may do …</span>}
        {!asking && rights.exec === false && <span class="dim">You may not open a shell here: it takes the right to create pods/exec.</span>}
        {!asking && rights.exec && ways.length === 0 && <span class="dim">Nothing runs in this pod.</span>}
      </div>
      {unloaded && (
        <p role="alert" class="note">
          The page's terminal cannot be loaded: the server is away, or was updated since the page was opened. <button type="button" onClick={() => location.reload()}>Load the page again</button>
        </p>
      )}
      <Debuggers pod={pod} list={debuggers} rights={rights} held={open1} open={(w) => void open(w)} />
      <div class="session-tabs">
        {open1.map((s, i) => (
          <button key={i} type="button" aria-pressed={s === chosen} onClick={() => choose(s)}>{s.wish.title}</button>
        ))}
      </div>
      {chosen && <SessionView key={chosen.wish.title + open1.indexOf(chosen)} session={chosen} command={commandOf(pod, chosen, ways)} close={() => close(chosen)} />}
      {!chosen && (
        <ul class="ways">
          {ways.map((w) => <li key={w.id}><strong>{w.title}</strong><span class="dim">{w.help}</span><Command words={w.command} /></li>)}
        </ul>
      )}
    </section>
  );
}

function commandOf(pod: Pod, session: Session, ways: Way[]): string[] {
  const name = session.wish.debugger;
  const box = name ? boxesOf(pod).find((b) => b.spec.name === name) : undefined;
  return (box ? takeUp(pod, box) : ways.find((w) => w.wish.title === session.wish.title))?.command ?? ["wherry", "debug", pod.metadata.name, "-n", session.wish.namespace];
}

interface DebuggersProperties {
  pod: Pod;
  list: Box[];
  rights: Rights;
  held: Session[];
  open: (way: Way) => void;
}

/** Debuggers are the debug sessions that run in the pod, whoever began them, with the way back into each. */
function Debuggers({ pod, list, rights, held, open }: DebuggersProperties) {
  const { namespace = "default", name } = pod.metadata;
  const mayStop = useRight({ namespace, name, verb: "delete", resource: "pods", subresource: "debug" });
  const [problem, setProblem] = useState("");
  const users = useUsers(pod, list.length > 0 && rights.wherry === true);
  const stop = (container: string) =>
    kube(podPath(namespace, name, `debug/${encodeURIComponent(container)}`), { method: "DELETE" }).then(() => setProblem(""), (e: Error) => setProblem(e.message));
  if (list.length === 0) {
    return null;
  }
  return (
    <ul class="debuggers" aria-label="Debug sessions that run in this pod">
      {list.map((box) => {
        const here = held.some((s) => s.wish.debugger === box.spec.name && s.state !== "ended");
        return (
          <li key={box.spec.name}>
            <strong>{box.spec.name}</strong>
            <span class="dim">{users.get(box.spec.name) ?? ""} {box.spec.image}{box.spec.targetContainerName ? `, beside ${box.spec.targetContainerName}` : ""}</span>
            {rights.attach && !here && <button type="button" onClick={() => open(takeUp(pod, box))}>Take up again</button>}
            {rights.wherry && mayStop && <button type="button" onClick={() => void stop(box.spec.name)}>Stop</button>}
          </li>
        );
      })}
      {problem && <li role="alert" class="bad">{problem}</li>}
    </ul>
  );
}

interface Run {
  spec?: { container?: string; user?: string };
  status?: { finishedAt?: string };
}

/** useUsers says who began which debug session, by the server's records. */
function useUsers(pod: Pod, ask: boolean): Map<string, string> {
  const [users, set] = useState(new Map<string, string>());
  const { namespace = "default", name, resourceVersion } = pod.metadata;
  useEffect(() => {
    if (!ask) {
      return;
    }
    const stop = new AbortController();
    kube<{ items?: Run[] }>(podPath(namespace, name, "debug"), { signal: stop.signal }).then(
      (list) => set(new Map((list.items ?? []).filter((r) => !r.status?.finishedAt).map((r) => [r.spec?.container ?? "", `by ${r.spec?.user ?? "?"},`]))),
      () => undefined, // who may not read the records sees the sessions without them
    );
    return () => stop.abort();
  }, [namespace, name, resourceVersion, ask]);
  return users;
}

function SessionView({ session, command, close }: { session: Session; command: string[]; close: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  useEffect(() => {
    const { screen } = session;
    place.current?.append(screen.host);
    screen.fit();
    screen.focus();
    const sizes = new ResizeObserver(() => screen.fit());
    if (place.current) {
      sizes.observe(place.current);
    }
    const stop = session.onChange(() => redraw((n) => n + 1));
    return () => {
      sizes.disconnect();
      stop();
      screen.host.remove();
    };
  }, [session]);
  const { state, words, wish } = session;
  return (
    <div class="session">
      <div class="session-bar">
        <span role="status">
          {wish.title}: {state === "connecting" ? "waiting for the server …" : state === "open" ? "open" : words}
        </span>
        <button type="button" onClick={close}>{state === "ended" ? "Close" : wish.stays ? "Leave; it goes on" : "End"}</button>
        <span class="dim">Ctrl+F6 leaves the terminal for this bar</span>
        <span class="fill" />
        <Command words={command} />
      </div>
      <div ref={place} class="terminal-place" />
    </div>
  );
}

// SPDX-License-Identifier: Apache-2.0

import { useContext, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { signOut } from "../api/session";
import { useList } from "../api/store";
import type { Namespace } from "../api/types";
import { Page } from "./context";
import { go, href, type Route } from "./router";
import { useTheme } from "./theme";

interface Properties {
  route: Route;
  signedOut: () => void;
  help: () => void;
}

const views: [string, string][] = [["pods", "Pods"], ["workloads", "Workloads"], ["services", "Services"], ["nodes", "Nodes"], ["record", "Record"]];

/** Header has what every view has: where one is, the namespace, the theme, who one is. */
export function Header({ route, signedOut, help }: Properties) {
  const { session } = useContext(Page);
  const [theme, next] = useTheme();
  const namespace = route.at.get("namespace") ?? "";
  const [problem, setProblem] = useState("");
  const leave = () => signOut().then(signedOut, (error: Error) => {
    if (error instanceof ApiError && error.code === 401) {
      return signedOut(); // a session that the server does not know is over too
    }
    setProblem(`You are still signed in: ${error.message}`);
  });
  return (
    <header class="top">
      <a class="brand" href={href("pods", { namespace })}>Wherry</a>
      <nav aria-label="Views">
        {views.map(([view, title]) => (
          <a key={view} href={href(view, { namespace })} aria-current={route.view === view ? "page" : undefined}>{title}</a>
        ))}
      </nav>
      <NamespaceChoice namespace={namespace} view={route.view} />
      <span class="fill" />
      <span class="user" title={(session.groups ?? []).join(", ")}>{session.user}</span>
      <button type="button" class="quiet" onClick={next} title="Light, dark, or as the system is">
        {theme === "system" ? "Auto" : theme === "light" ? "Light" : "Dark"}
      </button>
      <button type="button" class="quiet" onClick={help} aria-label="Help: keys" title="Keys">?</button>
      <button type="button" class="quiet" onClick={() => void leave()}>Sign out</button>
      {(problem || session.problem) && <span role="alert" class="bad">{problem || session.problem}</span>}
    </header>
  );
}

function NamespaceChoice({ namespace, view }: { namespace: string; view: string }) {
  const { stores } = useContext(Page);
  const { items, problem } = useList<Namespace>(stores, { path: "/api/v1/namespaces" });
  const list = view === "object" ? "workloads" : view.startsWith("pod/") || view === "pod" ? "pods" : view;
  const choose = (name: string) => go(href(list, { namespace: name, filter: filterNow() }));
  if (problem) {
    // Who may not list namespaces names his own.
    return (
      <label class="namespace">
        <span>Namespace</span>
        <input value={namespace} placeholder="all" spellcheck={false} autocapitalize="off"
          onChange={(e) => choose(e.currentTarget.value.trim())} />
      </label>
    );
  }
  const names = [...items.values()].map((n) => n.metadata.name).sort();
  if (namespace && !names.includes(namespace)) {
    names.unshift(namespace);
  }
  return (
    <label class="namespace">
      <span>Namespace</span>
      <select value={namespace} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="">all namespaces</option>
        {names.map((n) => <option key={n} value={n}>{n}</option>)}
      </select>
    </label>
  );
}

function filterNow(): string {
  return new URLSearchParams(location.search).get("filter") ?? "";
}

// SPDX-License-Identifier: Apache-2.0

// Which lines of the record are shown, and which command shows the same.

import { matches, type Filter } from "../pods/filter";
import type { Entry } from "./entries";

/** Show is what is listed: all that is known, or the pods that somebody has entered. */
export type Show = "" | "pods";

/** fits reports whether a line is to be shown: "pod=web" and "user=jane" are exact, words are looked for in all of it. */
export function fits(filter: Filter, e: Entry): boolean {
  const named = filter.labels.find((l) => l.key === "user")?.value;
  const labels: Record<string, string> = { pod: e.pod, user: e.user || (named && says(e.what, named) ? named : "") };
  return matches(filter, { metadata: { name: e.pod, namespace: e.namespace, labels } }, [e.user, e.how, e.what, e.command, e.end].join(" "));
}

/** says reports whether words for people name a person: "exec by jane into main at …", "jane runs …". */
function says(words: string, person: string): boolean {
  return ` ${words} `.includes(` by ${person} `) || words.startsWith(`${person} `);
}

/** valueOf is what a filter asks a label to be; undefined if it does not. */
export function valueOf(filter: Filter, key: string): string | undefined {
  return filter.labels.find((l) => l.key === key && !l.not && l.value)?.value;
}

/** filterBy is the filter's text that shows what has this value; undefined if no such text can be written. */
export function filterBy(key: "pod" | "user", value: string): string | undefined {
  return value && !/[\s,]/.test(value) ? `${key}=${value}` : undefined;
}

/** commandFor is the command that shows the same; wherry: the server is Wherry's. */
export function commandFor(namespace: string, filter: Filter, show: Show, wherry: boolean): string[] {
  const [pod, user] = [valueOf(filter, "pod"), valueOf(filter, "user")];
  const scope = namespace ? ["-n", namespace] : ["-A"];
  if (show === "pods") {
    const columns = `NAMESPACE:.metadata.namespace,POD:.metadata.name,ENTERED:.status.conditions[?(@.type=="wherry.dev/Tainted")].message`;
    return ["wherry", "kubectl", "get", "pods", ...(pod && namespace ? [pod] : []), ...scope, "-o", `custom-columns=${columns}`];
  }
  if (namespace && (!user || !wherry)) {
    return ["wherry", "debug", "history", ...(pod ? [pod] : []), ...scope];
  }
  if (!wherry) {
    return ["wherry", "kubectl", "get", "events", "-A", "--field-selector", "reason=DebugSessionStarted"];
  }
  const fields = [pod && `spec.pod.name=${pod}`, user && `spec.user=${user}`].filter(Boolean).join(",");
  return ["wherry", "kubectl", "get", "debugruns", ...scope, "-o", "wide", ...(fields ? ["--field-selector", fields] : [])];
}

/** auditFor is the command that shows every request, also those that leave no record, on the server's machine. */
export function auditFor(namespace: string, filter: Filter): string[] {
  const [pod, user] = [valueOf(filter, "pod"), valueOf(filter, "user")];
  return ["sudo", "wherry", "audit", ...(pod ? [pod] : []), ...(namespace ? ["-n", namespace] : pod ? ["-A"] : []), ...(user ? ["--user", user] : [])];
}

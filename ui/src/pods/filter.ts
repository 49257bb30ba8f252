// SPDX-License-Identifier: Apache-2.0

// Which pods of a list are shown: by text, and by labels as kubectl's -l takes them.

import type { KubeObject } from "../api/types";

/** Selector is what a text of the filter field asks for. */
export interface Filter {
  words: string[];
  labels: Requirement[];
}

interface Requirement {
  key: string;
  value?: string; // undefined: any
  not: boolean;
}

/** parseFilter reads "web app=front !canary tier!=db": words are looked for in names, the rest are labels. */
export function parseFilter(text: string): Filter {
  const out: Filter = { words: [], labels: [] };
  for (const part of text.split(/[\s,]+/)) {
    if (!part) {
      continue;
    }
    const pair = /^([\w./-]+)(!=|==|=)(.*)$/.exec(part);
    if (pair) {
      out.labels.push({ key: pair[1]!, value: pair[3]!, not: pair[2] === "!=" });
    } else if (part.startsWith("!") && part.length > 1) {
      out.labels.push({ key: part.slice(1), not: true });
    } else {
      out.words.push(part.toLowerCase());
    }
  }
  return out;
}

/** matches reports whether an object is to be shown; more is text beside its name, such as its status. */
export function matches(filter: Filter, object: KubeObject, more: string): boolean {
  const { name, namespace, labels } = object.metadata;
  const text = `${namespace ?? ""}/${name} ${more}`.toLowerCase();
  return (
    filter.words.every((word) => text.includes(word)) &&
    filter.labels.every((l) => {
      const has = labels !== undefined && Object.hasOwn(labels, l.key);
      const fits = has && (l.value === undefined || labels[l.key] === l.value);
      return fits !== l.not;
    })
  );
}

/** selectorOf is the part of a filter that kubectl's -l takes. */
export function selectorOf(filter: Filter): string {
  return filter.labels
    .map((l) => (l.value === undefined ? (l.not ? "!" : "") + l.key : `${l.key}${l.not ? "!=" : "="}${l.value}`))
    .join(",");
}

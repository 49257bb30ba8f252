// SPDX-License-Identifier: Apache-2.0

import { bytes } from "../machine/quantity";
import type { Difference, Entry } from "./answer";
import { rootWords } from "./root";

const kinds = { f: "-", d: "d", l: "l", p: "p", s: "s", c: "c", b: "b" } as const;

/** modeWords are kind and rights as ls writes them. */
export function modeWords({ kind, mode }: Entry): string {
  const three = (bits: number, special: boolean, letter: string) =>
    (bits & 4 ? "r" : "-") + (bits & 2 ? "w" : "-") + (special ? (bits & 1 ? letter : letter.toUpperCase()) : bits & 1 ? "x" : "-");
  return kinds[kind] + three(mode >> 6, (mode & 0o4000) !== 0, "s") + three(mode >> 3, (mode & 0o2000) !== 0, "s") + three(mode, (mode & 0o1000) !== 0, "t");
}

/** kindWords are what a file is. */
export function kindWords(e: Entry): string {
  return { f: "file", d: "folder", l: e.folder ? "link to a folder" : "link", p: "pipe", s: "socket", c: "device", b: "device" }[e.kind];
}

/** sizeWords are a size where it says something. */
export function sizeWords(e: Entry): string {
  return e.kind === "f" ? bytes(e.size) : "";
}

/** ownerWords are owner and group, by name where the container has one. */
export function ownerWords(e: Entry, users: Record<string, string>, groups: Record<string, string>): string {
  return `${users[e.uid] || e.uid}:${groups[e.gid] || e.gid}`;
}

/** timeWords are a time of this year or of another, without what nobody reads. */
export function timeWords(at: number): string {
  if (!Number.isFinite(at)) {
    return "";
  }
  const d = new Date(at);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** differenceWords say how a file differs, given what the two sides are called. */
export function differenceWords(d: Difference, one: string, two: string): string {
  if (!d.two) {
    return `only in ${rootWords(one)}`;
  }
  if (!d.one) {
    return `only in ${rootWords(two)}`;
  }
  const how = d.how.map((h) => {
    switch (h) {
      case "contents":
        return d.one!.size === d.two!.size ? "other contents of the same size" : `${bytes(d.one!.size)} and ${bytes(d.two!.size)}`;
      case "mode":
        return `${modeWords(d.one!)} and ${modeWords(d.two!)}`;
      case "owner":
        return `owner ${d.one!.uid}:${d.one!.gid} and ${d.two!.uid}:${d.two!.gid}`;
      case "kind":
        return `${kindWords(d.one!)} and ${kindWords(d.two!)}`;
      case "target":
        return "links to other places";
      default:
        return h;
    }
  });
  return how.join(", ");
}

/** inOrder are the files of a folder as they are shown: folders first, by name, numbers in it by what they are worth. */
export function inOrder(files: Entry[]): Entry[] {
  const order = new Intl.Collator("en", { numeric: true });
  return [...files].sort((a, b) => Number(b.folder) - Number(a.folder) || order.compare(a.name, b.name));
}

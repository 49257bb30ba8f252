// SPDX-License-Identifier: Apache-2.0

import { plain } from "./path";
import { folderOf, isImage } from "./root";
import { toolbox } from "./talk";

/** Show is what of a folder is shown: its files, or those that changed. */
export type Show = "" | "changed";

interface Looked {
  namespace: string;
  pod: string;
  container: string; // or an image's root
  path: string;
  other: string;
  isFile: boolean;
  show: Show;
  startedAt?: string;
}

/** commandFor is the command that shows the same. */
export function commandFor({ namespace, pod, container, path, other, isFile, show, startedAt }: Looked, now = Date.now()): string[] {
  const text = plain(path) ?? "/"; // no command line takes other bytes
  if (isFile && !other && !isImage(container)) {
    return ["wherry", "cp", `${namespace}/${pod}:${text}`, ".", "-c", container];
  }
  const exec = ["wherry", "exec", pod, "-n", namespace, "-m", toolbox, "--"];
  const of = (root: string) => `${folderOf(root)}${text === "/" ? "" : text}`;
  if (isFile && !other) {
    return [...exec, "cat", of(container)];
  }
  if (other) {
    return [...exec, "diff", isFile ? "-u" : "-rq", of(container), of(other)];
  }
  if (show === "changed") {
    const minutes = Math.max(1, Math.ceil((now - Date.parse(startedAt ?? "")) / 60_000) || 1);
    return [...exec, "find", of(container), "-xdev", "-cmin", `-${minutes}`];
  }
  return [...exec, "ls", "-la", of(container) + "/"];
}

// SPDX-License-Identifier: Apache-2.0

// Which ways there are into a pod.

import type { Pod } from "../api/types";
import { boxesOf, type Box } from "../pod/containers";
import type { Wish } from "./session";

/** Rights are what the reader may do in the pod's namespace. */
export interface Rights {
  exec?: boolean;
  attach?: boolean;
  debug?: boolean; // add debug containers
  imageExec?: boolean;
  wherry?: boolean; // the server is Wherry's, and knows debug sessions
}

/** Way is one that is offered. */
export interface Way {
  id: string;
  title: string;
  help: string;
  wish: Wish;
  command: string[];
}

const toolbox = "wherry.dev/toolbox";

/** running are the containers of a pod that run. */
export function running(pod: Pod): Box[] {
  return boxesOf(pod).filter((b) => b.status?.state?.running);
}

/** freeName is a name for a debug container: one that no container has that may still run. */
export function freeName(pod: Pod): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? "debug" : `debug-${n}`;
    const there = boxesOf(pod).find((b) => b.spec.name === name);
    if (!there || (there.kind === "debug" && there.status?.state?.terminated)) {
      return name;
    }
  }
}

/** waysInto are the ways that the reader's rights and the pod's state leave open. */
export function waysInto(pod: Pod, rights: Rights, container: string, profile: string): Way[] {
  const namespace = pod.metadata.namespace ?? "default";
  const name = pod.metadata.name;
  const base = { namespace, pod: name };
  const alive = running(pod);
  const own = alive.filter((b) => b.kind !== "debug");
  const target = own.find((b) => b.spec.name === container) ?? own.find((b) => b.kind === "main") ?? own[0];
  const out: Way[] = [];
  if (rights.exec && target) {
    out.push({
      id: "exec", title: `Shell in ${target.spec.name}`, help: "its own sh, with its own rights; it ends with this page",
      wish: { ...base, title: `shell in ${target.spec.name}`, way: "exec", stays: false, parameters: { container: target.spec.name, command: "/bin/sh" } },
      command: ["wherry", "kubectl", "exec", "-it", name, "-n", namespace, "-c", target.spec.name, "--", "/bin/sh"],
    });
  }
  if (rights.exec && rights.debug && rights.wherry && target) {
    const fresh = freeName(pod);
    out.push({
      id: "debug", title: `Debug session beside ${target.spec.name}`, help: "the toolbox, whatever the image contains; it goes on when you leave",
      wish: {
        ...base, title: `debug session ${fresh}`, way: "exec", stays: true, debugger: fresh,
        parameters: {
          ephemeralContainerName: fresh, ephemeralContainerImage: toolbox, ephemeralContainerTarget: target.spec.name, ephemeralContainerProfile: profile,
        },
      },
      command: ["wherry", "debug", name, "-n", namespace, "--target", target.spec.name, ...(profile === "general" ? [] : ["--profile", profile])],
    });
  }
  if (rights.exec && rights.imageExec && rights.wherry && pod.spec?.nodeName) {
    out.push({
      id: "visit", title: "Shell with all containers' files", help: "under /c, of those that have ended too; it ends with this page",
      wish: { ...base, title: "shell with all files", way: "exec", stays: false, parameters: { image: toolbox } },
      command: ["wherry", "exec", name, "-n", namespace, "-it", "-m", toolbox],
    });
  }
  return out;
}

/** takeUp is the way back into a debug session. */
export function takeUp(pod: Pod, box: Box): Way {
  const namespace = pod.metadata.namespace ?? "default";
  const name = box.spec.name;
  return {
    id: `attach ${name}`, title: `Take up ${name}`, help: "with what it has written before",
    wish: { namespace, pod: pod.metadata.name, title: `debug session ${name}`, way: "attach", stays: true, debugger: name, parameters: { container: name } },
    command: ["wherry", "debug", "-c", name, pod.metadata.name, "-n", namespace],
  };
}

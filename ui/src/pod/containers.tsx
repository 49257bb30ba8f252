// SPDX-License-Identifier: Apache-2.0

import type { Container, ContainerState, ContainerStatus, Pod, Terminated } from "../api/types";
import { useNow } from "../frame/clock";
import { href } from "../frame/router";
import { Scroll } from "../frame/scroll";
import { ageOf } from "../pods/age";

/** Box is a container of a pod with its kind and its status. */
export interface Box {
  kind: "init" | "sidecar" | "main" | "debug";
  spec: Container;
  status?: ContainerStatus;
}

/** boxesOf are a pod's containers in the order in which they start. */
export function boxesOf(pod: Pod): Box[] {
  const { spec = {}, status = {} } = pod;
  const of = (list: ContainerStatus[] | undefined, name: string) => list?.find((s) => s.name === name);
  return [
    ...(spec.initContainers ?? []).map((c): Box => ({
      kind: c.restartPolicy === "Always" ? "sidecar" : "init", spec: c, status: of(status.initContainerStatuses, c.name),
    })),
    ...(spec.containers ?? []).map((c): Box => ({ kind: "main", spec: c, status: of(status.containerStatuses, c.name) })),
    ...(spec.ephemeralContainers ?? []).map((c): Box => ({ kind: "debug", spec: c, status: of(status.ephemeralContainerStatuses, c.name) })),
  ];
}

/** stateWords say how a container is, with how urgent that is. */
export function stateWords(box: Box, now: number): { text: string; tone: string; more: string } {
  const state: ContainerState = box.status?.state ?? {};
  if (state.running) {
    const since = ageOf(state.running.startedAt, now);
    if (box.kind === "init" || box.kind === "debug") {
      return { text: "Running", tone: "busy", more: `for ${since}` };
    }
    if (box.status?.ready) {
      return { text: "Running", tone: "good", more: `for ${since}` };
    }
    return { text: "Running", tone: "busy", more: `for ${since}, ${box.status?.started === false ? "not started" : "not ready"}` };
  }
  if (state.terminated) {
    return { text: endOf(state.terminated), tone: state.terminated.exitCode === 0 ? "done" : "bad", more: `${ageOf(state.terminated.finishedAt, now)} ago` };
  }
  const reason = state.waiting?.reason ?? "Waiting";
  const calm = ["ContainerCreating", "PodInitializing", "Waiting"].includes(reason);
  return { text: reason, tone: calm ? "idle" : "bad", more: state.waiting?.message ?? "" };
}

/** endOf is how a container ended: code and reason. */
export function endOf(ended: Terminated): string {
  const reason = ended.reason && ended.reason !== "Completed" && ended.reason !== "Error" ? ` (${ended.reason})` : "";
  return `exit ${ended.exitCode}${ended.signal ? `, signal ${ended.signal}` : ""}${reason}`;
}

/** Containers are a pod's containers as a table. */
export function Containers({ pod }: { pod: Pod }) {
  const now = useNow();
  const { namespace, name } = pod.metadata;
  return (
    <section class="card" aria-label="Containers">
      <h2>Containers</h2>
      <Scroll label="What each container does">
        <table>
          <thead>
            <tr><th>Name</th><th>Kind</th><th>State</th><th>Restarts</th><th>Last end</th><th>Image</th><th><span class="hidden-text">Views</span></th></tr>
          </thead>
          <tbody>
            {boxesOf(pod).map((box) => {
              const state = stateWords(box, now);
              const last = box.status?.lastState?.terminated;
              const container = box.spec.name;
              return (
                <tr key={box.kind + container}>
                  <td class="strong">{container}</td>
                  <td class="dim">{box.kind}</td>
                  <td><span class={`status tone-${state.tone}`}>{state.text}</span> <span class="dim">{state.more}</span></td>
                  <td>{box.status?.restartCount ?? 0}</td>
                  <td>{last ? <><span class={last.exitCode ? "tone-bad" : ""}>{endOf(last)}</span> <span class="dim">{ageOf(last.finishedAt, now)} ago</span></> : ""}</td>
                  <td class="mono">{box.spec.image}</td>
                  <td class="links">
                    <a href={href("pod/logs", { namespace, name, container })}>log</a>
                    {last && <a href={href("pod/logs", { namespace, name, container, previous: "1" })}>log before</a>}
                    {box.status?.containerID && <a href={href("pod/files", { namespace, name, container })}>files</a>}
                    {box.status?.state?.running && <a href={href("pod/shell", { namespace, name, container })}>shell</a>}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

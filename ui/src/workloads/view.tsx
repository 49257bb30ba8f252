// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useMemo } from "preact/hooks";
import { useList, type Snapshot } from "../api/store";
import type { Pod } from "../api/types";
import { Command } from "../frame/command";
import { Page } from "../frame/context";
import { Refused } from "../frame/notice";
import { pathIn, serviceKind, workloadKinds } from "../object/kinds";
import { podsPath } from "../pods/list";
import { serviceTree, workloadTree, type EndpointSlice, type Service, type Workload } from "./tree";
import { TreeView } from "./treeview";

const endpointSlices = { group: "discovery.k8s.io", resource: "endpointslices" };

/** WorkloadsView shows what makes pods, as trees down to the pods. */
export function WorkloadsView({ at }: { at: URLSearchParams }) {
  const { stores } = useContext(Page);
  const namespace = at.get("namespace") ?? "";
  useEffect(() => {
    document.title = "Workloads · Wherry";
  }, []);
  const lists = workloadKinds.map((k) => [k.kind, useList<Workload>(stores, { path: pathIn(namespace, k) })] as const);
  const pods = useList<Pod>(stores, { path: podsPath(namespace) });
  const nodes = useMemo(
    () => workloadTree(lists.flatMap(([kind, s]) => [...s.items.values()].map((o): [string, Workload] => [kind, o])), [...pods.items.values()]),
    [...lists.map(([, s]) => s.items), pods.items],
  );
  return (
    <section class="pods" aria-label="Workloads">
      <div class="bar">
        <h1>Workloads</h1>
        <Problems lists={[...lists, ["Pod", pods]]} />
        <span class="fill" />
        <Command words={["wherry", "kubectl", "get", workloadKinds.map((k) => k.resource).join(",") + ",pods", ...scope(namespace)]} />
      </div>
      <TreeView nodes={nodes} label="Workloads" empty={pods.loaded ? "There is nothing here." : "Reading …"} namespaced={!namespace} />
    </section>
  );
}

/** ServicesView shows services with their endpoints, and why some are not ready. */
export function ServicesView({ at }: { at: URLSearchParams }) {
  const { stores } = useContext(Page);
  const namespace = at.get("namespace") ?? "";
  useEffect(() => {
    document.title = "Services · Wherry";
  }, []);
  const services = useList<Service>(stores, { path: pathIn(namespace, serviceKind) });
  const slices = useList<EndpointSlice>(stores, { path: pathIn(namespace, endpointSlices) });
  const pods = useList<Pod>(stores, { path: podsPath(namespace) });
  const nodes = useMemo(() => serviceTree([...services.items.values()], [...slices.items.values()], pods.items), [services.items, slices.items, pods.items]);
  if (services.problem) {
    return <Refused problem={services.problem} what="The server does not show these services" />;
  }
  return (
    <section class="pods" aria-label="Services">
      <div class="bar">
        <h1>Services</h1>
        <Problems lists={[["EndpointSlice", slices], ["Pod", pods]]} />
        <span class="fill" />
        <Command words={["wherry", "kubectl", "get", "services,endpointslices", ...scope(namespace), "-o", "wide"]} />
      </div>
      <TreeView nodes={nodes} label="Services" empty={services.loaded ? "There are no services here." : "Reading …"} namespaced={!namespace} />
    </section>
  );
}

function scope(namespace: string): string[] {
  return namespace ? ["-n", namespace] : ["-A"];
}

/** Problems names what the reader may not see. */
function Problems({ lists }: { lists: (readonly [string, Snapshot<never> | Snapshot<Workload> | Snapshot<Pod> | Snapshot<EndpointSlice>])[] }) {
  const refused = lists.filter(([, s]) => s.problem);
  if (refused.length === 0) {
    return null;
  }
  return <span class="dim" title={refused.map(([, s]) => s.problem?.message).join("\n")}>Not shown to you: {refused.map(([kind]) => kind).join(", ")}</span>;
}

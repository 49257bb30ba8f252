// SPDX-License-Identifier: Apache-2.0

import { useContext, useMemo } from "preact/hooks";
import type { ApiError } from "../api/client";
import { useList, type Source } from "../api/store";
import type { KubeEvent, Pod } from "../api/types";
import { useWherry } from "../api/wherry";
import { Page } from "../frame/context";
import { podsPath } from "../pods/list";
import { enteredOf, entriesOf, reasons, type DebugRun, type Entry } from "./entries";
import type { Show } from "./filter";

/** Seen is what the reader may see of the record. */
export interface Seen {
  wherry?: boolean;
  entries: Entry[];
  loaded: boolean;
  problems: [what: string, problem: ApiError][];
}

/** useRecord follows the record of a namespace, or of all. */
export function useRecord(namespace: string, show: Show): Seen {
  const { stores } = useContext(Page);
  const wherry = useWherry();
  const within = namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  const pods = useList<Pod>(stores, { path: podsPath(namespace) });
  const runs = useList<DebugRun>(stores, wherry && show === "" ? { path: `/apis/debug.wherry.dev/v1${within}/debugruns` } : null);
  const [one, two] = reasons[wherry ? "wherry" : "cluster"];
  const eventsOf = (reason: string): Source | null =>
    wherry === undefined || show !== "" ? null : { path: `/api/v1${within}/events`, parameters: { fieldSelector: `reason=${reason}` } };
  const first = useList<KubeEvent>(stores, eventsOf(one!));
  const second = useList<KubeEvent>(stores, eventsOf(two!));
  const entries = useMemo(() => {
    const all = [...pods.items.values()];
    return show === "pods" ? enteredOf(all) : entriesOf([...runs.items.values()], all, [...first.items.values(), ...second.items.values()]);
  }, [show, pods.items, runs.items, first.items, second.items]);
  const problems: Seen["problems"] = [];
  for (const [what, problem] of [["records of debugging", runs.problem], ["pods", pods.problem], ["events", first.problem ?? second.problem]] as const) {
    if (problem) {
      problems.push([what, problem]);
    }
  }
  return {
    wherry,
    entries,
    loaded: pods.loaded && (show === "pods" || (wherry !== undefined && first.loaded && second.loaded && (!wherry || runs.loaded))),
    problems,
  };
}

// SPDX-License-Identifier: Apache-2.0

import { useMemo } from "preact/hooks";
import { href } from "../frame/router";
import { Scroll } from "../frame/scroll";
import type { History } from "./history";
import { runsOf, type Runs } from "./runs";

interface Properties {
  namespace: string;
  name: string;
  history: History;
}

/** RunsView puts the last run of each container that was started anew beside the run before. */
export function RunsView({ namespace, name, history }: Properties) {
  const all = useMemo(() => runsOf(history), [history]);
  return <>{all.map((runs) => <Two key={runs.container} runs={runs} namespace={namespace} name={name} />)}</>;
}

function Two({ runs, namespace, name }: { runs: Runs; namespace: string; name: string }) {
  const { container, label, before, last, facts } = runs;
  const differ = facts.filter((f) => f.differs).length;
  return (
    <details class="runs">
      <summary>{label}: run {last} beside run {before} <span class="dim">{differ === 0 ? "much the same" : `${differ} ${differ === 1 ? "thing differs" : "things differ"}`}</span></summary>
      <Scroll label={`Two runs of ${container}`}>
        <table>
          <thead>
            <tr>
              <th><span class="hidden-text">What</span></th>
              <th>Run {before} <a href={href("pod/logs", { namespace, name, container, previous: "1" })}>log</a></th>
              <th>Run {last} <a href={href("pod/logs", { namespace, name, container })}>log</a></th>
              <th><span class="hidden-text">Whether they differ</span></th>
            </tr>
          </thead>
          <tbody>
            {facts.map((f) => (
              <tr key={f.what} class={f.differs ? "differs" : undefined}>
                <td class="dim nowrap">{f.what}</td><td>{f.before || "–"}</td><td class={f.differs ? "strong" : undefined}>{f.last || "–"}</td><td class="dim nowrap">{f.differs ? "differs" : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}

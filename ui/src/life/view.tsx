// SPDX-License-Identifier: Apache-2.0

import { useMemo, useRef } from "preact/hooks";
import { Command } from "../frame/command";
import { useNow } from "../frame/clock";
import { go, href } from "../frame/router";
import { LifeChart } from "./chart";
import { save, standalone } from "./export";
import { hasEnded, type History } from "./history";
import { draw } from "./picture";
import { RunsView } from "./runsview";
import { useLife } from "./use";

interface Properties {
  namespace: string;
  name: string;
  mark: string;
}

/** LifeView is a pod's life: what took how long. */
export function LifeView({ namespace, name, mark }: Properties) {
  const life = useLife(namespace, name, mark);
  const now = useNow(1000);
  const section = useRef<HTMLElement>(null);
  const shown = useMemo(() => (life.history ? atTime(life.history, life.received, now) : null), [life, now]);
  const picture = useMemo(() => (shown ? draw(shown) : null), [shown]);
  const open = (container: string, at: number, attempt: number) =>
    go(href("pod/logs", { namespace, name, container, at: new Date(at).toISOString(), attempt: attempt ? String(attempt) : undefined }));
  const exportSvg = () => {
    const drawing = section.current?.querySelector<SVGSVGElement>(".life > svg");
    if (drawing) {
      save(`${name}.svg`, "image/svg+xml", [standalone(drawing, getComputedStyle(document.body).backgroundColor)]);
    }
  };
  return (
    <section class="card" ref={section} aria-label="Life">
      <div class="card-head">
        <h2>Life</h2>
        <span class="fill" />
        {picture && <button type="button" class="quiet" onClick={exportSvg}>Save as SVG</button>}
        <Command words={["wherry", "timeline", name, "-n", namespace]} />
      </div>
      {picture && <LifeChart picture={picture} title={`Life of pod ${namespace}/${name}`} open={open} />}
      {shown && <RunsView namespace={namespace} name={name} history={shown} />}
      {!picture && (life.problem ? <NoLife code={life.problem.code} message={life.problem.message} /> : <p class="dim">Reading …</p>)}
    </section>
  );
}

function NoLife({ code, message }: { code: number; message: string }) {
  return (
    <p class="dim">
      {code === 404 ? "There is no timeline: " : "The timeline cannot be shown: "}{message}
    </p>
  );
}

/** atTime lets a life that goes on reach to now, by the node's clock: nothing is asked for that. */
function atTime(history: History, received: number, now: number): History {
  if (history.gone || hasEnded(history)) {
    return history;
  }
  const later = Date.parse(history.now) + Math.max(0, now - received);
  return later > Date.parse(history.now) ? { ...history, now: new Date(later).toISOString() } : history;
}

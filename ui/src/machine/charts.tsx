// SPDX-License-Identifier: Apache-2.0

import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Command } from "../frame/command";
import { everyUnseen } from "./collector";
import { largest, linesOf, type Figures, type Lines, type Sample } from "./history";
import { bytes } from "./quantity";

type Chart = ComponentType<{ title: string; names: readonly string[]; lines: Lines; words: (value: number) => string; binary?: boolean }>;

const cores = (n: number) => `${n === 0 ? "0" : n.toFixed(n < 0.1 ? 3 : 2)} cores`;

const figures: [figure: keyof Figures, title: string, words: (value: number) => string, binary: boolean][] = [
  ["cpu", "CPU", cores, false], ["memory", "Memory", bytes, true], ["disk", "Disk", bytes, true],
];

const pods = 5;

/** useChart loads what draws charts, which no other view needs. */
function useChart(): { chart?: Chart; problem?: string } {
  const [state, set] = useState<{ chart?: Chart; problem?: string }>({});
  useEffect(() => {
    let left = false;
    const tell = (loaded: { chart?: Chart; problem?: string }) => !left && set(loaded);
    import("./chart").then(({ default: chart }) => tell({ chart }), () => tell({ problem: "a part of the page could not be loaded: load the page anew" }));
    return () => {
      left = true;
    };
  }, []);
  return state;
}

/** Charts are what a node and the pods that used the most have used of late. */
export function Charts({ node, samples, refused }: { node: string; samples: readonly Sample[]; refused: string }) {
  const { chart, problem } = useChart();
  const why = refused || problem;
  const command = <Command words={["wherry", "kubectl", "get", "--raw", `/api/v1/nodes/${node}/proxy/stats/summary`]} />;
  if (why) {
    return <p class="dim wrap">No charts: {why}</p>;
  }
  if (!chart || samples.length < 2) {
    return <><p class="dim" role="status">Charts come with the second figures, ten seconds after the first.</p>{command}</>;
  }
  return (
    <>
      <div class="charts">
        {figures.map(([figure, title, words, binary]) => <OneChart key={figure} draw={chart} node={node} samples={samples} figure={figure} title={title} words={words} binary={binary} />)}
      </div>
      <div class="card-head">
        <span class="dim">{sinceWords(samples)}</span>
        <span class="fill" />
        {command}
      </div>
    </>
  );
}

/** sinceWords say how far back it goes: not farther than somebody has looked. */
function sinceWords(samples: readonly Sample[]): string {
  const since = new Date(samples[0]?.at ?? 0).toLocaleTimeString();
  return `Since ${since}: from when this page first showed nodes, an hour at most. The node keeps no past. Pods are the ${pods} that used the most.`;
}

interface OneProperties {
  draw: Chart;
  node: string;
  samples: readonly Sample[];
  figure: keyof Figures;
  title: string;
  words: (value: number) => string;
  binary: boolean;
}

function OneChart({ draw: Draw, node, samples, figure, title, words, binary }: OneProperties) {
  const { names, lines } = useMemo(() => {
    const top = largest(samples, figure, pods);
    return { names: [node, ...top], lines: linesOf(samples, figure, top, 3 * everyUnseen) };
  }, [samples, figure, node]);
  return <Draw title={title} names={names} lines={lines} words={words} binary={binary} />;
}

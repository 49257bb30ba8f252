// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useRef } from "preact/hooks";
import { useList } from "../api/store";
import type { KubeEvent, Pod } from "../api/types";
import { Command } from "../frame/command";
import { Page } from "../frame/context";
import { useNow } from "../frame/clock";
import { Refused } from "../frame/notice";
import { href } from "../frame/router";
import { FilesView } from "../files/view";
import { LifeView } from "../life/view";
import { LogsView } from "../logs/view";
import { podKind } from "../object/kinds";
import { YamlView } from "../object/yaml";
import { ageOf } from "../pods/age";
import { podsPath } from "../pods/list";
import { StatusWord } from "../pods/row";
import { rowOf } from "../pods/status";
import { ShellView } from "../shell/view";
import { Conditions } from "./conditions";
import { Containers } from "./containers";
import { Events } from "./events";
import { Facts } from "./facts";
import { WhyView } from "./why";

interface Properties {
  namespace: string;
  name: string;
  tab: string;
  at: URLSearchParams;
}

/** PodView is a pod, whether it is there or has gone while it was looked at. */
export function PodView({ namespace, name, tab, at }: Properties) {
  const { stores } = useContext(Page);
  const one = { path: podsPath(namespace), parameters: { fieldSelector: `metadata.name=${name}` } };
  const { items, loaded, problem, lost } = useList<Pod>(stores, one);
  const there = items.get(`${namespace}/${name}`);
  const last = useRef<Pod | undefined>(undefined);
  last.current = there ?? last.current;
  const pod = last.current;
  useEffect(() => {
    document.title = `${name} · Wherry`;
  }, [name]);
  if (problem) {
    return <Refused problem={problem} what="The server does not show this pod" />;
  }
  return (
    <section class="pod" aria-label={`Pod ${name}`}>
      <Head namespace={namespace} name={name} pod={pod} gone={loaded && !there} />
      <Tabs namespace={namespace} name={name} tab={tab} />
      {tab === "logs" && pod && <LogsView pod={pod} at={at} />}
      {tab === "files" && pod && <FilesView pod={pod} at={at} />}
      {tab === "shell" && pod && <ShellView pod={pod} at={at} />}
      {tab === "yaml" && pod && <YamlView kind={podKind} namespace={namespace} name={name} version={pod.metadata.resourceVersion} />}
      {tab === "" && <Overview namespace={namespace} name={name} pod={pod} lost={lost} gone={loaded && !there} />}
      {tab !== "" && !pod && loaded && <p class="pad">There is no pod {namespace}/{name}. Its <a href={href("pod", { namespace, name })}>life</a> is kept for an hour.</p>}
    </section>
  );
}

function Head({ namespace, name, pod, gone }: { namespace: string; name: string; pod?: Pod; gone: boolean }) {
  const now = useNow();
  const row = pod && rowOf(pod);
  return (
    <div class="pod-head">
      <h1>
        <a href={href("pods", { namespace })} class="dim" title="The pods of this namespace">{namespace}</a>
        <span class="dim"> / </span>
        {name}
      </h1>
      {row && !gone && <StatusWord row={row} />}
      {gone && <strong class="tone-bad" role="status">This pod is gone{pod ? "; what you see is the last that was seen of it" : ""}.</strong>}
      {row && !gone && row.waitsFor && <span class="dim">waits for {row.waitsFor}</span>}
      {row && <span class="dim">{row.ready}/{row.containers} ready · {row.restarts} {row.restarts === 1 ? "restart" : "restarts"} · {ageOf(pod.metadata.creationTimestamp, now)}</span>}
      <span class="fill" />
      <Command words={["wherry", "kubectl", "describe", "pod", name, "-n", namespace]} />
    </div>
  );
}

const tabs: [string, string][] = [["", "Overview"], ["logs", "Logs"], ["files", "Files"], ["shell", "Shell"], ["yaml", "YAML"]];

function Tabs({ namespace, name, tab }: { namespace: string; name: string; tab: string }) {
  return (
    <nav class="tabs" aria-label="Views of the pod">
      {tabs.map(([path, title]) => (
        <a key={path} href={href(path ? `pod/${path}` : "pod", { namespace, name })} aria-current={tab === path ? "page" : undefined}>{title}</a>
      ))}
    </nav>
  );
}

function Overview({ namespace, name, pod, lost, gone }: { namespace: string; name: string; pod?: Pod; lost: boolean; gone: boolean }) {
  const { stores } = useContext(Page);
  const events = useList<KubeEvent>(stores, {
    path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`,
    parameters: { fieldSelector: `involvedObject.kind=Pod,involvedObject.name=${name}` },
  });
  const versions = [...events.items.values()].map((e) => e.metadata.resourceVersion).join();
  return (
    <div class="overview">
      {pod && !gone && <WhyView pod={pod} events={[...events.items.values()]} />}
      <LifeView namespace={namespace} name={name} mark={`${pod?.metadata.resourceVersion} ${versions} ${lost} ${gone}`} />
      {pod && <Containers pod={pod} />}
      <div class="columns">
        {pod && <Facts pod={pod} />}
        {pod && <Conditions pod={pod} />}
      </div>
      <Events events={events} namespace={namespace} name={name} uid={pod?.metadata.uid} />
    </div>
  );
}

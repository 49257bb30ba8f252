// SPDX-License-Identifier: Apache-2.0

import { useContext, useEffect, useRef } from "preact/hooks";
import { useList } from "../api/store";
import type { KubeObject } from "../api/types";
import { Page } from "../frame/context";
import { Refused } from "../frame/notice";
import { href } from "../frame/router";
import { pathIn, serviceKind, type Kind } from "./kinds";
import { YamlView } from "./yaml";

/** ObjectView is an object that has no view of its own, as YAML. It stays when the object goes. */
export function ObjectView({ kind, namespace, name }: { kind: Kind; namespace: string; name: string }) {
  const { stores } = useContext(Page);
  const { items, loaded, problem } = useList<KubeObject>(stores, { path: pathIn(namespace, kind), parameters: { fieldSelector: `metadata.name=${name}` } });
  const there = items.get(`${namespace}/${name}`);
  const version = useRef<string | undefined>(undefined);
  version.current = there?.metadata.resourceVersion ?? version.current;
  const list = kind === serviceKind ? "services" : "workloads";
  useEffect(() => {
    document.title = `${name} · Wherry`;
  }, [name]);
  return (
    <section class="pod" aria-label={`${kind.kind} ${name}`}>
      <div class="pod-head">
        <h1>
          <a href={href(list, { namespace })} class="dim" title={`The ${list} of this namespace`}>{namespace}</a>
          <span class="dim"> / </span>
          {name}
        </h1>
        <span class="dim">{kind.kind}</span>
        {loaded && !problem && !there && (
          <strong class="tone-bad" role="status">{version.current ? "It is gone; what you see is the last that was seen of it." : "There is none of this name."}</strong>
        )}
      </div>
      {problem && <Refused problem={problem} what={`The server does not show this ${kind.kind}`} />}
      {version.current !== undefined && <YamlView kind={kind} namespace={namespace} name={name} version={version.current} />}
    </section>
  );
}

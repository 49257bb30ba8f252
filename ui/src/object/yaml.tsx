// SPDX-License-Identifier: Apache-2.0

import { useMemo, useState } from "preact/hooks";
import type { KubeObject } from "../api/types";
import { Command } from "../frame/command";
import { useCopy } from "../frame/copy";
import { Refused } from "../frame/notice";
import { save } from "../life/export";
import { pathIn, type Kind } from "./kinds";
import { useObject, useWriter } from "./use";

interface Properties {
  kind: Kind;
  namespace: string;
  name: string;
  version: string | undefined; // of the object, as it is known from a watch: with each one it is read anew
}

/** YamlView is an object as YAML, to be read. */
export function YamlView({ kind, namespace, name, version }: Properties) {
  const [managed, setManaged] = useState(false);
  const [told, copy] = useCopy();
  const { object, problem } = useObject(`${pathIn(namespace, kind)}/${encodeURIComponent(name)}`, version);
  const { write, problem: unloaded } = useWriter();
  const text = useMemo(() => (write && object ? write(managed ? object : withoutManagedFields(object as KubeObject)) : undefined), [write, object, managed]);
  const ready = text !== undefined;
  return (
    <section class="yaml" aria-label="YAML">
      <div class="bar">
        <button type="button" aria-pressed={managed} title="metadata.managedFields: who has set which field" onClick={() => setManaged(!managed)}>Managed fields</button>
        <button type="button" disabled={!ready} onClick={() => void copy(text ?? "")}>Copy YAML</button>
        <button type="button" disabled={!ready} onClick={() => save(`${name}.yaml`, "application/yaml", [text ?? ""])}>Download</button>
        <span role="status" class="told dim">{told}</span>
        <span class="fill" />
        <Command words={["wherry", "kubectl", "get", kind.resource, name, "-n", namespace, "-o", "yaml", managed ? "--show-managed-fields" : undefined]} />
      </div>
      {problem && <Refused problem={problem} what={`The server does not show this ${kind.kind}`} />}
      {unloaded && <p role="alert" class="note">{unloaded}</p>}
      {ready && <pre class="file-text" tabIndex={0} aria-label={`YAML of ${kind.kind} ${name}`}>{text}</pre>}
      {!ready && !problem && !unloaded && <p class="pad dim" role="status">Reading …</p>}
    </section>
  );
}

/** withoutManagedFields is an object without what no person has written. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

// SPDX-License-Identifier: Apache-2.0

/** Kind is a kind whose objects the page shows by themselves. */
export interface Kind {
  kind: string;
  group: string;
  resource: string;
}

/** The kinds that have pods made for them, in the order in which they are listed. */
export const workloadKinds: readonly Kind[] = [
  { kind: "Deployment", group: "apps", resource: "deployments" },
  { kind: "ReplicaSet", group: "apps", resource: "replicasets" },
  { kind: "StatefulSet", group: "apps", resource: "statefulsets" },
  { kind: "DaemonSet", group: "apps", resource: "daemonsets" },
  { kind: "Job", group: "batch", resource: "jobs" },
  { kind: "CronJob", group: "batch", resource: "cronjobs" },
];

export const serviceKind: Kind = { kind: "Service", group: "", resource: "services" };

export const podKind: Kind = { kind: "Pod", group: "", resource: "pods" };

/** kindOf is a kind that is shown as YAML alone, by its name; pods have views of their own. */
export function kindOf(name: string): Kind | undefined {
  return [...workloadKinds, serviceKind].find((k) => k.kind === name);
}

/** pathIn is the list of a kind in a namespace, or in all. */
export function pathIn(namespace: string, { group, resource }: Pick<Kind, "group" | "resource">): string {
  const base = group ? `/apis/${group}/v1` : "/api/v1";
  return namespace ? `${base}/namespaces/${encodeURIComponent(namespace)}/${resource}` : `${base}/${resource}`;
}

// SPDX-License-Identifier: Apache-2.0

// The parts of Kubernetes' objects that the page reads. Everything may be missing: servers differ, and what a field
// holds was written by others.

export interface Meta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  managedFields?: unknown;
  ownerReferences?: { kind: string; name: string; controller?: boolean; uid?: string }[];
}

export interface KubeObject {
  kind?: string;
  metadata: Meta;
}

export interface Terminated {
  exitCode: number;
  signal?: number;
  reason?: string;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: Terminated;
}

export interface ContainerStatus {
  name: string;
  image?: string;
  imageID?: string;
  containerID?: string;
  ready?: boolean;
  started?: boolean;
  restartCount?: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

export interface Container {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  tty?: boolean;
  stdin?: boolean;
  restartPolicy?: string;
  targetContainerName?: string;
  ports?: { containerPort: number; protocol?: string; name?: string }[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastProbeTime?: string;
}

export interface PodStatus {
  phase?: string;
  reason?: string;
  message?: string;
  podIP?: string;
  podIPs?: { ip: string }[];
  hostIP?: string;
  qosClass?: string;
  startTime?: string;
  conditions?: Condition[];
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
  ephemeralContainerStatuses?: ContainerStatus[];
}

export interface Pod extends KubeObject {
  spec?: {
    nodeName?: string;
    serviceAccountName?: string;
    restartPolicy?: string;
    priorityClassName?: string;
    initContainers?: Container[];
    containers?: Container[];
    ephemeralContainers?: Container[];
    readinessGates?: { conditionType: string }[];
  };
  status?: PodStatus;
}

export interface KubeEvent extends KubeObject {
  involvedObject?: { kind?: string; name?: string; namespace?: string; uid?: string; fieldPath?: string };
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  eventTime?: string;
  series?: { count?: number; lastObservedTime?: string };
  source?: { component?: string };
  reportingComponent?: string;
}

export interface Namespace extends KubeObject {
  status?: { phase?: string };
}

/** What the API answers where it refuses. */
export interface Status {
  kind?: string;
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: { causes?: { reason?: string; message?: string }[] };
}

export interface List<T> {
  metadata?: { resourceVersion?: string; continue?: string };
  items?: T[];
}

export interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" | string;
  object: T;
}

// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Facts is what could be learned of a pod, or of what was to make one. All but one of Pod and Workload may be missing.
type Facts struct {
	Now      time.Time         `json:"now"`
	Pod      *corev1.Pod       `json:"pod,omitempty"`
	Workload *Workload         `json:"workload,omitempty"` // where it has no pod
	Via      string            `json:"via,omitempty"`      // what was asked for, if the pod is only one of its pods
	Events   []corev1.Event    `json:"events,omitempty"`   // of the pod, its claims and its owners
	Nodes    []Node            `json:"nodes,omitempty"`    // all, for a pod without one; else its own
	Objects  []Object          `json:"objects,omitempty"`  // that the pod refers to
	Services []Service         `json:"services,omitempty"` // that the pod may have meant
	Logs     []Log             `json:"logs,omitempty"`
	Usage    map[string]string `json:"usage,omitempty"` // memory that containers use now, as a quantity
	Kills    []Kill            `json:"kills,omitempty"` // OOM kills, as the node's kernel has logged them
	Names    []Name            `json:"names,omitempty"` // that the pod has asked for
	Owners   []Owner           `json:"owners,omitempty"`
	Unseen   []Unseen          `json:"unseen,omitempty"`
}

// Kill is an end of a container's process for want of memory.
type Kill struct {
	Container string     `json:"container"` // its ID
	Killed    MemoryOf   `json:"killed"`
	Others    []MemoryOf `json:"others,omitempty"` // that counted for the same limit, who had most first
}

// MemoryOf is a process and what it had in memory.
type MemoryOf struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Bytes int64  `json:"bytes,omitempty"`
}

// Workload is an object that makes pods.
type Workload struct {
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	Wanted     int32       `json:"wanted"` // pods
	Suspended  bool        `json:"suspended,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"` // its own, and those of what it makes its pods by
}

// Condition is a condition of any object.
type Condition struct {
	Of      string `json:"of"` // Deployment web
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Node is a node and what pods on it have left of it.
type Node struct {
	Name          string                 `json:"name"`
	Labels        map[string]string      `json:"labels,omitempty"`
	Taints        []corev1.Taint         `json:"taints,omitempty"`
	Unschedulable bool                   `json:"unschedulable,omitempty"`
	Ready         corev1.ConditionStatus `json:"ready,omitempty"`
	Words         string                 `json:"words,omitempty"` // of its condition Ready
	Allocatable   corev1.ResourceList    `json:"allocatable,omitempty"`
	// Requested is what its pods ask for together; nil: that is not known.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	Pods      int                 `json:"pods,omitempty"`
}

// Object is something that a pod refers to by its name.
type Object struct {
	Kind    string                      `json:"kind"`
	Name    string                      `json:"name"`
	Missing bool                        `json:"missing,omitempty"`
	Keys    []string                    `json:"keys,omitempty"` // of a ConfigMap or Secret
	Managed []metav1.ManagedFieldsEntry `json:"managed,omitempty"`
	// Of a claim to a volume:
	Phase   string   `json:"phase,omitempty"`
	Class   *string  `json:"class,omitempty"`
	Classes []string `json:"classes,omitempty"` // all there are, the default one marked; nil: not known
	Late    bool     `json:"late,omitempty"`    // its class waits for the first pod
}

// Service is a Service and who answers for it.
type Service struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	IPs       []string             `json:"ips,omitempty"`
	Ports     []corev1.ServicePort `json:"ports,omitempty"`
	Selector  map[string]string    `json:"selector,omitempty"`
	Known     bool                 `json:"known,omitempty"` // that the next three are
	Ready     int                  `json:"ready,omitempty"` // endpoints
	Unready   int                  `json:"unready,omitempty"`
	Chosen    int                  `json:"chosen,omitempty"` // pods that the selector fits
}

// Log is the end of a container's log.
type Log struct {
	Container string   `json:"container"`
	Previous  bool     `json:"previous,omitempty"` // of the run before the present one
	Lines     []string `json:"lines"`
}

// Name is a question for a name, as it was answered.
type Name struct {
	At   time.Time `json:"at"`
	Name string    `json:"name"`
	Code string    `json:"code,omitempty"` // NOERROR, NXDOMAIN, …; empty: nobody has answered
}

// Owner is what has made the pod, or has made its owner.
type Owner struct {
	Kind    string                      `json:"kind"`
	Name    string                      `json:"name"`
	Managed []metav1.ManagedFieldsEntry `json:"managed,omitempty"`
	// Rollout is when the template of the present pods came to be, and Diff in what it differs from the one before.
	Rollout time.Time `json:"rollout,omitzero"`
	Diff    []string  `json:"diff,omitempty"`
}

// Unseen is something that could not be looked at.
type Unseen struct {
	What  string `json:"what"`
	Right string `json:"right,omitempty"` // that is missing: "list nodes"
	Why   string `json:"why,omitempty"`
}

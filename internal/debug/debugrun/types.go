// SPDX-License-Identifier: Apache-2.0

package debugrun

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is what was run.
type Kind string

const (
	// EphemeralContainer is a run of a debug container, whoever added it: exec++ or pods/ephemeralcontainers.
	EphemeralContainer Kind = "EphemeralContainer"
	// ImageExec is a command run from an image inside a pod; it leaves nothing in the pod.
	ImageExec Kind = "ImageExec"
)

// Reasons of a run's end that do not come from the container's own state.
const (
	// PodGone: the pod was deleted while the run was open; how it ended is not known.
	PodGone = "PodGone"
	// Unwatched: the server was stopped while the run was open; how it ended is not known.
	Unwatched = "Unwatched"
	// Refused: the node did not take an image exec.
	Refused = "Refused"
)

// DebugRun is the record of one run of a debug container or of one image exec. It outlives the pod.
type DebugRun struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What was run, where and by whom.
	Spec DebugRunSpec `json:"spec"`
	// What became of it.
	// +optional
	Status DebugRunStatus `json:"status,omitempty"`
}

// DebugRunSpec says what was run, where and by whom. It never changes.
type DebugRunSpec struct {
	// What was run: EphemeralContainer or ImageExec.
	Kind Kind `json:"kind"`
	// The pod it was run in.
	Pod PodReference `json:"pod"`
	// Name of the ephemeral container. Empty for an image exec.
	// +optional
	Container string `json:"container,omitempty"`
	// How often the container's name had been used in this pod before.
	// +optional
	Run int32 `json:"run,omitempty"`
	// The image.
	Image string `json:"image"`
	// The command; empty for the image's own.
	// +optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// Arguments of the image's own command.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// Name of the container whose processes it saw, if any.
	// +optional
	Target string `json:"target,omitempty"`
	// Whether an image exec could write to the containers' filesystems.
	// +optional
	Writable bool `json:"writable,omitempty"`
	// Name of the user who asked for it.
	User string `json:"user"`
}

// PodReference distinguishes a pod from others that had its name.
type PodReference struct {
	// Name of the pod, in the record's namespace.
	Name string `json:"name"`
	// UID of the pod.
	UID types.UID `json:"uid"`
	// Name of the node the pod was on.
	// +optional
	Node string `json:"node,omitempty"`
}

// DebugRunStatus says what became of a run.
type DebugRunStatus struct {
	// When its process started; not set if it never did.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// When it ended; not set while it may still run.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Exit code of its process, if it is known.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Why it ended, or why it does not start, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// The same for a person.
	// +optional
	Message string `json:"message,omitempty"`
}

// DebugRunList is a list of records.
type DebugRunList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The records.
	Items []DebugRun `json:"items"`
}

// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Host is the agent, as far as this API needs it. All methods are safe for concurrent use, and but for Started do not
// block; pods they give are not to be changed.
type Host interface {
	// Pods gives the pods of this node with their newest status.
	Pods() []*corev1.Pod
	// Pod finds one of them.
	Pod(namespace, name string) (*corev1.Pod, bool)
	// UID gives the node's UID of the pod that the API server knows by this one. They differ for static pods, which the
	// API server knows by their mirror pods.
	UID(uid string) types.UID
	// ContainerID gives the runtime's id of the newest attempt of a container, of whatever kind. An error tells the
	// user which container of which pod has none, and why.
	ContainerID(podUID types.UID, container string) (string, error)
	// Started waits until one run of a debug container has started, and gives the runtime's id of it, also when it has
	// ended since. Runs count as podspec.DebugRun has it. It waits for one that nobody has asked for yet, until ctx is
	// done; an error tells the user which container of which pod will not start any more, and why.
	Started(ctx context.Context, podUID types.UID, container string, run uint32) (string, error)
	// SandboxID gives the runtime's id of the pod's ready sandbox. An error tells the user which pod has
	// none, and why.
	SandboxID(podUID types.UID) (string, error)
	// LogPath gives the log file of the newest attempt of a container, or of the one before; an error if there is none.
	LogPath(podUID types.UID, container string, previous bool) (string, error)
	// Changed is closed when any of the above may have changed; ask for it again then.
	Changed() <-chan struct{}
}

// LogReader writes the container log in file path (CRI format) to stdout and stderr, as opts asks: follow, tail, since,
// timestamps, limit. When following it ends after running says false and all is read, or when ctx is done. A nil writer
// means that stream is not wanted.
type LogReader func(ctx context.Context, path string, opts *corev1.PodLogOptions, running func() bool, stdout,
	stderr io.Writer) (to int64, err error)

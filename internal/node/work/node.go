// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// Node is what a worker needs done. All methods are called from several goroutines at once and block until done, until
// they fail, or until their context ends.
type Node interface {
	// Observe returns what the node shows of the pod now.
	Observe(ctx context.Context, pod *corev1.Pod) (plan.Seen, error)
	// Do runs one operation to its end. It must be idempotent. An error that has a method Reason() string gives the
	// reason that the container's status shows.
	Do(ctx context.Context, t Task) error
	// SaveStatus stores a status in the API server; from is the one it holds as far as the worker knows. It returns the
	// pod as the API server holds it then. [ErrGone] says that there is no such pod any more.
	SaveStatus(ctx context.Context, pod *corev1.Pod, from, to *corev1.PodStatus) (*corev1.Pod, error)
	// Forget removes the record of a deleted pod that has left the node. Removing one that is not there is no error.
	Forget(ctx context.Context, pod *corev1.Pod) error
	// Tell is called when the status has changed, for events. It must not block.
	Tell(pod *corev1.Pod, from, to *corev1.PodStatus)
	// Announce is called with what the planner tells of the pod or, if one is named, of a container, once each. It must
	// not block.
	Announce(pod *corev1.Pod, container string, e plan.Event)
	// Trace is called with what happens to the pod, in order and as it happens, for its timeline. It must not block.
	Trace(pod *corev1.Pod, e Event)
	// Refuse says why this node does not take the pod, or nil. It is asked once, when the pod comes.
	Refuse(pod *corev1.Pod) *plan.Refusal
	// Allocated returns the pod with the resources that the node has set aside for it in the place of those that its
	// spec asks for, and what was decided of these if they are not the same; nil if it is open or there is nothing to
	// decide. The pod itself is not changed. What it says was recorded where it outlives the agent.
	Allocated(pod *corev1.Pod) (*corev1.Pod, *plan.Resize)
	// Facts returns what all pods of the node share.
	Facts() plan.Node
}

// Task is one operation to run.
type Task struct {
	Pod *corev1.Pod
	plan.Op
	Seen plan.Seen
	// Sooner brings Until forward while a StopContainer runs.
	Sooner <-chan time.Time
}

// Event is something that happened to a pod: an operation has begun, one has returned, the worker has looked at the
// node, or has nothing left to do.
type Event struct {
	At        time.Time
	Op        plan.Op    // no verb when the worker has looked
	Returned  bool       // the operation has returned, with Err
	Cancelled bool       // it had been cancelled before it did
	Err       error      // how it failed
	Seen      *plan.Seen // what the worker saw; not to be changed
	Left      bool       // nothing of the pod is left on the node, and its worker ends
}

// ErrGone says that the API server has no such pod.
var ErrGone = errors.New("the pod is gone from the API server")

// ErrImageGone says that an image that was pulled is not on the node any more: it has to be pulled again.
var ErrImageGone = errors.New("the image is no longer on the node")

// failedImage returns the image that an error is about, where it says so.
func failedImage(err error) string {
	var r interface{ ImageName() string }
	if errors.As(err, &r) {
		return r.ImageName()
	}
	return ""
}

// reasonOf returns the reason an error shows in a container's status.
func reasonOf(err error, otherwise string) string {
	var r interface{ Reason() string }
	if errors.As(err, &r) {
		return r.Reason()
	}
	return otherwise
}

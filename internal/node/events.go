// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/wherryproject/wherry/internal/node/hook"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/podspec"
)

// recorder records events as the kubelet does, counted and with a limit per object.
type recorder struct {
	client kubernetes.Interface // nil: events are logged
	log    *slog.Logger
	cast   record.EventBroadcaster
	to     record.EventRecorder
}

func newRecorder(client kubernetes.Interface, node string, log *slog.Logger) *recorder {
	cast := record.NewBroadcaster()
	return &recorder{client, log, cast, cast.NewRecorder(scheme.Scheme,
		corev1.EventSource{Component: "kubelet", Host: node})}
}

func (r *recorder) start() {
	if r.client == nil {
		r.cast.StartEventWatcher(func(e *corev1.Event) {
			r.log.Info("event", "type", e.Type, "reason", e.Reason, "object", e.InvolvedObject.Kind+" "+
				e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name, "message", e.Message)
		})
		return
	}
	r.cast.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.client.CoreV1().Events("")})
}

func (r *recorder) stop() { r.cast.Shutdown() }

// Event is part of [ops.Recorder].
func (r *recorder) Event(pod *corev1.Pod, fieldPath, eventType, reason, message string) {
	r.to.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion, FieldPath: fieldPath}, eventType, reason, message)
}

func (a *Agent) imageEvent(e image.Event) {
	a.events.Event(e.Pod, fieldPath(e.Pod, e.Container), e.Type, e.Reason, e.Message)
}

// fieldPath names a container the way events do: spec.containers{name}.
func fieldPath(pod *corev1.Pod, container string) string {
	ref, _ := podspec.FindContainer(&pod.Spec, container)
	return fmt.Sprintf("spec.%s{%s}", ref.Kind.List(), container)
}

// Tell is part of [work.Node]: what a status shows for the first time, and no operation has recorded, becomes an event.
func (a *Agent) Tell(pod *corev1.Pod, from, to *corev1.PodStatus) {
	a.changes.notify()
	a.history.StatusChanged(pod, from, to, time.Now())
	a.metrics.StatusChanged(pod, from, to, time.Now())
	for _, now := range podspec.Statuses(to) {
		a.containerChanged(pod, podspec.FindStatus(from, now.Name), now)
	}
	if to.Phase == corev1.PodFailed && from.Phase != to.Phase && to.Reason != "" && !evicted(to) {
		a.events.Event(pod, "", corev1.EventTypeWarning, to.Reason, to.Message)
	}
}

// evicted reports whether a status is that of an evicted pod: the planner has recorded that event when the eviction
// began.
func evicted(s *corev1.PodStatus) bool {
	return plan.IsEviction(s.Reason) && slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonTerminationByKubelet
	})
}

func (a *Agent) containerChanged(pod *corev1.Pod, before, now *corev1.ContainerStatus) {
	w := now.State.Waiting
	if w == nil {
		return
	}
	if b := before; b != nil && b.State.Waiting != nil && b.State.Waiting.Reason == w.Reason &&
		b.RestartCount == now.RestartCount {
		return
	}
	path := fieldPath(pod, now.Name)
	switch w.Reason {
	case "CrashLoopBackOff":
		a.events.Event(pod, path, corev1.EventTypeWarning, "BackOff",
			fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", now.Name, pod.Name, pod.Namespace,
				pod.UID))
	case "ImagePullBackOff":
		a.events.Event(pod, path, corev1.EventTypeNormal, "BackOff", w.Message)
		a.events.Event(pod, path, corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
	case image.ImageNotAllowed:
		a.events.Event(pod, path, corev1.EventTypeWarning, "Failed", "Error: "+w.Message)
	case "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError":
		a.events.Event(pod, path, corev1.EventTypeWarning, "Failed", "Error: "+w.Reason)
	}
}

// hookNotices tells of hooks that went otherwise than their manifests say, as the kubelet does.
func (a *Agent) hookNotices() hook.Notices {
	return hook.Notices{SleepCut: a.metrics.SleepCut, PlainHTTP: func(pod *corev1.Pod, address string) {
		a.metrics.HookFellBack()
		a.events.Event(pod, "", corev1.EventTypeWarning, "LifecycleHTTPFallback",
			"request to HTTPS lifecycle hook "+address+" got HTTP response, retry with HTTP succeeded")
	}}
}

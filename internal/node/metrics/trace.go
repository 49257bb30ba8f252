// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Trace is called when an operation has begun or returned, or the node was looked at.
func (m *Metrics) Trace(pod *corev1.Pod, e work.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.pods[pod.UID]
	switch {
	case e.Op.Verb == 0:
		if r != nil && e.Seen != nil {
			r.look(pod, e.Seen)
		}
	case !e.Returned:
		if r != nil {
			r.began[e.Op.Key()] = e.At
		}
		m.begins(pod, e.Op)
	default:
		m.returns(pod, r, e)
	}
}

// begins counts what starts.
func (m *Metrics) begins(pod *corev1.Pod, op plan.Op) {
	switch op.Verb {
	case plan.RunSandbox:
		m.startedPods.Inc()
		if ownUsers(pod) {
			m.startedUserNS.Inc()
		}
	case plan.StartContainer:
		m.startedContainers.WithLabelValues(typeOf(pod, op.Container)).Inc()
	}
}

func (m *Metrics) returns(pod *corev1.Pod, r *record, e work.Event) {
	key := e.Op.Key()
	if r != nil {
		if from, ok := r.began[key]; ok {
			delete(r.began, key)
			m.operationTime.WithLabelValues(e.Op.Verb.String()).Observe(e.At.Sub(from).Seconds())
			if e.Op.Verb == plan.PullImage && !r.started && len(r.pulls) < mostSpans {
				r.pulls = append(r.pulls, span{from, e.At})
			}
		}
	}
	if e.Cancelled {
		return
	}
	if e.Op.Verb == plan.Probe {
		m.probed(pod, r, e)
		return
	}
	if e.Err == nil {
		return
	}
	m.operationErrors.WithLabelValues(e.Op.Verb.String()).Inc()
	switch e.Op.Verb {
	case plan.RunSandbox:
		m.startedPodErrors.Inc()
		if ownUsers(pod) {
			m.startedUserNSErrors.Inc()
		}
	case plan.PullImage: // to the kubelet's counters it is the first step of a start
		m.startedContainers.WithLabelValues(typeOf(pod, e.Op.Container)).Inc()
		m.startedErrors.WithLabelValues(typeOf(pod, e.Op.Container), codeOf(e.Err, "ErrImagePull")).Inc()
	case plan.StartContainer:
		m.startedErrors.WithLabelValues(typeOf(pod, e.Op.Container), codeOf(e.Err, "CreateContainerError")).Inc()
	case plan.PostStart: // and this the last
		m.startedErrors.WithLabelValues(typeOf(pod, e.Op.Container), "PostStartHookError").Inc()
	}
}

// ownUsers reports whether a pod is to have a user namespace of its own (hostUsers: false).
func ownUsers(pod *corev1.Pod) bool { return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers }

// typeOf returns the kubelet's word for a kind of container; a sidecar is an init container to it.
func typeOf(pod *corev1.Pod, name string) string {
	ref, _ := podspec.FindContainer(&pod.Spec, name)
	switch ref.Kind {
	case podspec.Init, podspec.Sidecar:
		return "init_container"
	case podspec.Ephemeral:
		return "ephemeral_container"
	}
	return "container"
}

// codeOf returns the reason of a failed start, if it is one of those that there are: a label must not be free text.
func codeOf(err error, otherwise string) string {
	var r interface{ Reason() string }
	if !errors.As(err, &r) {
		return otherwise
	}
	switch code := r.Reason(); code {
	case "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return code
	}
	return otherwise
}

// probeLabels name one series of the counts of probes.
type probeLabels struct {
	kind, result, container, pod, namespace string
	uid                                     types.UID
}

func (l probeLabels) labels() map[string]string {
	return map[string]string{"probe_type": l.kind, "result": l.result, "container": l.container, "pod": l.pod,
		"namespace": l.namespace, "pod_uid": string(l.uid)}
}

// probed counts a try of a probe. Between its ticks only a success counts.
func (m *Metrics) probed(pod *corev1.Pod, r *record, e work.Event) {
	if r == nil {
		return // nobody would take its series away again
	}
	l := probeLabels{kind: kindOf(e.Op.Probe), result: "successful", container: e.Op.Container, pod: pod.Name,
		namespace: pod.Namespace, uid: pod.UID}
	var no *work.ProbeFailure
	switch {
	case e.Err == nil:
	case e.Op.Early:
		return
	case errors.As(e.Err, &no):
		l.result = "failed"
	default:
		l.result = "unknown"
	}
	r.probed[l] = struct{}{}
	m.probes.With(l.labels()).Inc()
}

func kindOf(k plan.ProbeKind) string {
	switch k {
	case plan.StartupProbe:
		return "Startup"
	case plan.LivenessProbe:
		return "Liveness"
	}
	return "Readiness"
}

// Nudged is called with an event from the runtime, about one pod or, with an empty uid, about nothing in particular.
func (m *Metrics) Nudged(uid string) {
	scope := "pod"
	if uid == "" {
		scope = "all"
	}
	m.nudges.WithLabelValues(scope).Inc()
}

// Decided is part of [work.Meter].
func (m *Metrics) Decided(took time.Duration) { m.decisionTime.Observe(took.Seconds()) }

// Passed is part of [work.Meter].
func (m *Metrics) Passed(kind string, took time.Duration) {
	m.podWorker.WithLabelValues(kind).Observe(took.Seconds())
}

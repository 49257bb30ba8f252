// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// soon bounds what nothing but a busy machine may hold up. What a fault would hold it up by is made longer than this in
// the tests that use it.
const soon = 20 * time.Second

type watchable = runtime.Object

// Create creates a pod and fails the test if it is refused.
func (s *Space) Create(pod *corev1.Pod) *corev1.Pod {
	s.T.Helper()
	out, err := s.TryCreate(pod)
	if err != nil {
		s.T.Fatalf("create pod %s: %v", pod.Name, err)
	}
	return out
}

// TryCreate creates a pod and hands the refusal on.
func (s *Space) TryCreate(pod *corev1.Pod) (*corev1.Pod, error) {
	return s.Client.CoreV1().Pods(s.Namespace).Create(s.ctx, pod, metav1.CreateOptions{})
}

// Get reads a pod.
func (s *Space) Get(name string) *corev1.Pod {
	s.T.Helper()
	pod, err := s.Client.CoreV1().Pods(s.Namespace).Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		s.T.Fatalf("get pod %s: %v", name, err)
	}
	return pod
}

// Delete deletes a pod, with its own grace.
func (s *Space) Delete(name string) {
	s.T.Helper()
	if err := s.Client.CoreV1().Pods(s.Namespace).Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.T.Fatalf("delete pod %s: %v", name, err)
	}
}

// Wait waits until a pod is as until says, or fails the test with what the pod is instead. What says it in words.
func (s *Space) Wait(name, what string, until func(*corev1.Pod) bool) *corev1.Pod {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	var last *corev1.Pod
	_, err := watchtools.UntilWithSync(ctx, s.podWatch(name), &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return false, nil
		}
		last = pod
		if e.Type == watch.Deleted {
			return false, fmt.Errorf("pod %s was deleted", name)
		}
		return until(pod), nil
	})
	if err != nil {
		s.T.Fatalf("wait for pod %s to %s: %v; it is %s\n%s", name, what, err, summary(last), s.Describe())
	}
	return last
}

func (s *Space) podWatch(name string) cache.ListerWatcher {
	return cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "pods", s.Namespace,
		fields.OneTermEqualSelector("metadata.name", name))
}

// WaitReady waits until all of a pod's containers run and are ready, and until the programs of the test's own in them
// have begun.
func (s *Space) WaitReady(name string) *corev1.Pod {
	s.T.Helper()
	pod := s.Wait(name, "be Ready",
		func(p *corev1.Pod) bool { return Condition(p, corev1.PodReady) == corev1.ConditionTrue })
	s.awaitBegun(pod)
	return pod
}

// WaitPhase waits for a phase.
func (s *Space) WaitPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	s.T.Helper()
	return s.Wait(name, "be "+string(phase), func(p *corev1.Pod) bool { return p.Status.Phase == phase })
}

// WaitWaiting waits until a container (init or main) waits for a reason.
func (s *Space) WaitWaiting(name, container, reason string) *corev1.ContainerStatus {
	s.T.Helper()
	p := s.Wait(name, "have "+container+" waiting: "+reason, func(p *corev1.Pod) bool {
		c := Status(p, container)
		return c != nil && c.State.Waiting != nil && c.State.Waiting.Reason == reason
	})
	return Status(p, container)
}

// WaitRestarts waits until a container has been restarted at least n times.
func (s *Space) WaitRestarts(name, container string, n int32) *corev1.Pod {
	s.T.Helper()
	return s.Wait(name, fmt.Sprintf("have %s restarted %d times", container, n), func(p *corev1.Pod) bool {
		c := Status(p, container)
		return c != nil && c.RestartCount >= n
	})
}

// WaitEvent waits for an event about an object whose reason it is, and whose message contains text.
func (s *Space) WaitEvent(object, reason, text string) *corev1.Event {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	lw := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "events", s.Namespace,
		fields.OneTermEqualSelector("involvedObject.name", object))
	e, err := watchtools.UntilWithSync(ctx, lw, &corev1.Event{}, nil, func(e watch.Event) (bool, error) {
		ev, ok := e.Object.(*corev1.Event)
		return ok && ev.Reason == reason && strings.Contains(ev.Message, text), nil
	})
	if err != nil {
		s.T.Fatalf("wait for an event %s (%q) about %s: %v\n%s", reason, text, object, err, s.Describe())
	}
	return e.Object.(*corev1.Event)
}

// WaitGone waits until a pod's object is gone, and checks that nothing of it is left on the node at that moment
// (PL-10).
func (s *Space) WaitGone(pod *corev1.Pod) {
	s.T.Helper()
	s.WaitGoneWithin(pod, Timeout)
}

// WaitGoneWithin is WaitGone for a pod that has more to end than others.
func (s *Space) WaitGoneWithin(pod *corev1.Pod, most time.Duration) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, most)
	defer cancel()
	if err := s.awaitGone(ctx, "pods", s.Namespace, pod.Name); err != nil {
		s.T.Fatalf("pod %s is not gone: %v; it is %s\n%s", pod.Name, err, summary(s.Get(pod.Name)), s.Describe())
	}
	s.NoTrace(pod)
}

// NoTrace checks that nothing of a pod is on the node now.
func (s *Space) NoTrace(pod *corev1.Pod) {
	s.T.Helper()
	left, err := s.Traces(s.ctx, pod)
	if err != nil {
		s.T.Errorf("look for what is left of pod %s: %v", pod.Name, err)
	}
	if len(left) > 0 {
		s.T.Errorf("left of pod %s (%s) on the node:\n  %s", pod.Name, pod.UID, strings.Join(left, "\n  "))
	}
}

// AwaitNoTrace checks that nothing of a pod is on the node soon: of one deleted by force, the object goes first. The
// node's files and processes are no API to watch, so this one wait polls.
func (s *Space) AwaitNoTrace(pod *corev1.Pod) {
	s.T.Helper()
	deadline := time.Now().Add(Timeout / 3)
	for {
		left, err := s.Traces(s.ctx, pod)
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.T.Errorf("left of pod %s (%s) on the node (err=%v):\n  %s", pod.Name, pod.UID, err,
				strings.Join(left, "\n  "))
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Condition is the status of a pod's condition, "" if it has none.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// Status is the status of an init or main container, nil if there is none yet.
func Status(p *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// Ended is how a container ended: its state's, else its last state's termination; nil if it never did.
func Ended(p *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	c := Status(p, container)
	switch {
	case c == nil:
		return nil
	case c.State.Terminated != nil:
		return c.State.Terminated
	default:
		return c.LastTerminationState.Terminated
	}
}

// summary says the state of a pod in one line.
func summary(p *corev1.Pod) string {
	if p == nil {
		return "not there"
	}
	out := []string{string(p.Status.Phase), p.Status.Reason, p.Status.Message}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			state := c.State.String()
			switch {
			case c.State.Waiting != nil:
				state = "waiting: " + c.State.Waiting.Reason + " " + c.State.Waiting.Message
			case c.State.Terminated != nil:
				state = fmt.Sprintf("ended: %d %s %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason,
					c.State.Terminated.Message)
			case c.State.Running != nil:
				state = "running"
			}
			out = append(out, fmt.Sprintf("%s: %s, %d restarts", c.Name, state, c.RestartCount))
		}
	}
	return strings.Join(out, "; ")
}

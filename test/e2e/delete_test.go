// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDelete: kubectl delete waits until the pod is gone from the API and the node, with the grace asked for (PL-10).
func TestDelete(t *testing.T) {
	t.Parallel()
	s := shared(t)
	up := func(name string, args ...string) *corev1.Pod {
		t.Helper()
		pod := NewPod(name, Tool(args...))
		*pod.Spec.TerminationGracePeriodSeconds = 60
		s.Create(pod)
		return s.WaitReady(name)
	}

	t.Run("PL-10 waits", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		pod := up("waits", "sleep")
		s.Kubectl("delete", "pod", "waits").Has(`pod "waits" deleted`)
		s.NoTrace(pod)
		s.KubectlFails("get", "pod", "waits").Says("not found")
	})
	t.Run("PL-10 does not wait", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		pod := up("later", "stubborn")
		s.Kubectl("delete", "pod", "later", "--wait=false")
		p := s.Get("later")
		if p.DeletionTimestamp == nil || *p.DeletionGracePeriodSeconds != 60 {
			t.Errorf("deletion %v, grace %v", p.DeletionTimestamp, p.DeletionGracePeriodSeconds)
		}
		s.Kubectl("get", "pod", "later").Has("1/1", "Terminating")
		s.Kubectl("exec", "later", "--", "/tool", "env", "IMAGE_SAYS").Is("IMAGE_SAYS=hello") // it is still there to look at
		begin := time.Now()
		s.Kubectl("delete", "pod", "later", "--grace-period=1") // a shorter grace takes over
		s.NoTrace(pod)
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("with a grace of 1s after one of 60s it took %s", took)
		}
	})
	t.Run("PL-10 force", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		pod := up("forced", "stubborn")
		s.Kubectl("delete", "pod", "forced", "--force", "--grace-period=0").Says("Immediate deletion does not wait")
		s.AwaitNoTrace(pod)
	})
	t.Run("PL-10 now", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		pod := up("now", "stubborn")
		begin := time.Now()
		s.Kubectl("delete", "pod", "now", "--now")
		s.NoTrace(pod)
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
	})
	t.Run("PL-10 finalizer", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		pod := NewPod("held", Tool("sleep"))
		pod.Finalizers = []string{"wherry.test/hold"}
		s.Create(pod)
		pod = s.WaitReady("held")
		s.Kubectl("delete", "pod", "held", "--wait=false")
		// Its containers end; the object stays, and says how they ended, until the finalizer is taken off.
		s.Wait("held", "have ended", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
		s.AwaitNoTrace(pod)
		if end := Ended(s.Get("held"), "main"); end == nil || end.ExitCode != 0 {
			t.Errorf("it ended %+v", end)
		}
		s.Kubectl("patch", "pod", "held", "--type", "json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
		s.WaitGone(pod)
	})
	t.Run("PL-10 pending", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		s.Create(NewPod("stuck", corev1.Container{Image: "wherry.test/absent:1", ImagePullPolicy: corev1.PullNever}))
		s.WaitWaiting("stuck", "main", "ErrImageNeverPull")
		pod := s.Get("stuck")
		s.Kubectl("delete", "pod", "stuck")
		s.NoTrace(pod)
	})
	t.Run("PL-10 again by the same name", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		first := up("again", "sleep")
		s.KubectlIn(strings.Replace(podManifest, "name: web", "name: again", 1), "replace", "--force", "-f", "-").Has("pod/again replaced")
		second := s.WaitReady("again")
		if first.UID == second.UID {
			t.Error("it is the same pod")
		}
		s.NoTrace(first)
	})
	t.Run("PL-10 by label", func(t *testing.T) {
		t.Parallel()
		s := s.With(t)
		var pods []*corev1.Pod
		for _, name := range []string{"l1", "l2", "l3"} {
			pod := NewPod(name, Tool("sleep"))
			pod.Labels["group"] = "l"
			s.Create(pod)
		}
		for _, name := range []string{"l1", "l2", "l3"} {
			pods = append(pods, s.WaitReady(name))
		}
		s.Kubectl("delete", "pods", "-l", "group=l").Has(`pod "l1" deleted`, `pod "l3" deleted`)
		for _, p := range pods {
			s.NoTrace(p)
		}
	})
}

// TestEviction: the eviction subresource deletes a pod, with its grace (PL-10).
func TestEviction(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("sleep")))
	pod := s.WaitReady("web")
	err := s.Client.CoreV1().Pods(s.Namespace).EvictV1(s.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	s.WaitGone(pod)
}

// TestNamespaceDeletion: deleting a namespace ends its pods with their grace, removes all objects in it, and refuses new ones
// meanwhile (PL-10).
func TestNamespaceDeletion(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("a", Tool("sleep")))
	stubborn := NewPod("b", Tool("stubborn"))
	*stubborn.Spec.TerminationGracePeriodSeconds = 15 // in which a busy machine runs kubectl twice
	s.Create(stubborn)
	s.Kubectl("create", "configmap", "cm", "--from-literal", "a=1")
	a, b := s.WaitReady("a"), s.WaitReady("b")
	s.Kubectl("delete", "namespace", s.Namespace, "--wait=false")
	s.KubectlFails("create", "configmap", "late").Says("because it is being terminated")
	s.Kubectl("get", "namespace", s.Namespace).Has("Terminating")
	s.Kubectl("wait", "--for=delete", "namespace/"+s.Namespace, "--timeout=80s")
	s.NoTrace(a)
	s.NoTrace(b)
	s.KubectlFails("get", "namespace", s.Namespace).Says("not found")
}

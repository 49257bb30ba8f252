// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWatch: kubectl get -w shows a pod's life as it goes by, from creation to deletion (PL-01).
func TestWatch(t *testing.T) {
	t.Parallel()
	s := shared(t)
	marker := NewPod("marker", Tool("sleep")) // tells when a watch has begun
	marker.Spec.NodeSelector = map[string]string{"there": "is-none"}
	s.Create(marker)
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		w := s.Start("get", "pods", "-w", "--output-watch-events")
		events := s.Start("get", "events", "-w")
		w.Out.Await("marker")
		s.Create(NewPod("passer", Tool("sleep")))
		pod := s.WaitReady("passer")
		w.Out.AwaitFunc("the pod running", func(all string) bool {
			return regexp.MustCompile(`MODIFIED +passer +1/1 +Running`).MatchString(all)
		})
		s.Delete("passer")
		all := w.Out.AwaitFunc("the pod deleted", func(all string) bool { return regexp.MustCompile(`DELETED +passer`).MatchString(all) })
		s.WaitGone(pod)
		events.Out.AwaitFunc("the container started and killed", func(all string) bool {
			return strings.Contains(all, "Started") && strings.Contains(all, "Killing")
		})
		last := -1
		for _, step := range []string{`ADDED +passer +0/1 +(Pending|ContainerCreating)`, `MODIFIED +passer +0/1 +ContainerCreating`, `1/1 +Running`, `1/1 +Terminating`, `DELETED`} {
			at := regexp.MustCompile(step).FindStringIndex(all)
			if at == nil || at[0] < last {
				t.Errorf("no %q in its place in\n%s", step, all)
				continue
			}
			last = at[0]
		}
	})
}

// TestWaitFor: kubectl wait for conditions, fields and deletion.
func TestWaitFor(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("http")))
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.Kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=80s").Is("pod/web condition met")
		s.Kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod", "--all", "--timeout=80s")
		s.KubectlFails("wait", "--for=condition=Ready=false", "pod/web", "--timeout=1s").Says("timed out waiting for the condition on pods/web")
	})
	s.Kubectl("delete", "pod", "web", "--wait=false")
	if r := s.kubectlCommand("wait", "--for=delete", "pod/web", "--timeout=80s").run(); r.Code != 0 && !strings.Contains(r.Err, "not found") {
		t.Errorf("%s: %d %s%s", r.Line, r.Code, r.Out, r.Err)
	}
}

// TestEvents: the events of a pod's life have the reasons, types, sources and objects of the kubelet's and the scheduler's
// (PL-01).
func TestEvents(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(WithInit(NewPod("web", Tool("sleep")), Named("setup", Tool("exit", "0"))))
	pod := s.WaitReady("web")
	s.Delete("web")
	s.WaitGone(pod)
	killing := s.WaitEvent("web", "Killing", "Stopping container main")
	if killing.Source.Component != "kubelet" || killing.Source.Host != s.NodeName || killing.InvolvedObject.FieldPath != "spec.containers{main}" || killing.Type != corev1.EventTypeNormal || killing.InvolvedObject.UID != pod.UID {
		t.Errorf("%+v", killing)
	}
	s.WaitEvent("web", "Scheduled", "Successfully assigned "+s.Namespace+"/web to "+s.NodeName)
	list, err := s.Client.CoreV1().Events(s.Namespace).List(s.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reason=Started"})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range list.Items {
		paths = append(paths, e.InvolvedObject.FieldPath)
	}
	if got := strings.Join(paths, " "); !strings.Contains(got, "spec.initContainers{setup}") || !strings.Contains(got, "spec.containers{main}") {
		t.Errorf("containers with a Started event: %s", got)
	}
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.Kubectl("events").Has("Scheduled", "Started", "Killing", "Pod/web")
		s.Kubectl("events", "--for", "pod/web", "--types", "Warning").HasNot("Started")
		s.Kubectl("get", "events", "--field-selector", "reason=Killing").Has("Stopping container main").HasNot("Started")
		s.Kubectl("get", "events.events.k8s.io").Has("Killing")
	})
}

// TestUnschedulable: a pod that no node takes stays Pending and says why (PL-15).
func TestUnschedulable(t *testing.T) {
	t.Parallel()
	s := shared(t)
	pod := NewPod("picky", Tool("sleep"))
	pod.Spec.NodeSelector = map[string]string{"disk": "gold"}
	s.Create(pod)
	p := s.Wait("picky", "be refused by the scheduler", func(p *corev1.Pod) bool { return Condition(p, corev1.PodScheduled) == corev1.ConditionFalse })
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && (c.Reason != "Unschedulable" || !strings.Contains(c.Message, "0/1 nodes are available")) {
			t.Errorf("%s: %s", c.Reason, c.Message)
		}
	}
	s.WaitEvent("picky", "FailedScheduling", "0/1 nodes are available")
	s.Kubectl("get", "pod", "picky").Has("0/1", "Pending")
	s.Kubectl("label", "node", s.NodeName, "disk=gold")
	t.Cleanup(func() { s.KubectlEnv(nil, "label", "node", s.NodeName, "disk-") })
	s.WaitReady("picky")
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// PL-32: when the power fails pods end in the order of their priority, each within its time, as failed by the node; the
// node says that it goes down and takes no pods. wherry drain does the same by hand, and --undo takes it back.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := own(t, ServerOptions{Args: []string{"--service-cidr", "10.98.107.0/24", "--shutdown-grace-period", "30s", "--shutdown-grace-period-critical-pods", "10s"}})
	k := kitOn(t, s)
	const stubborn = `command: [sh, -c, 'trap "" TERM; while :; do sleep 1; done']`
	k.up(`
metadata: {name: low}
spec: {terminationGracePeriodSeconds: 3, containers: [{name: c, ` + stubborn + `}]}
`)
	k.up(`
metadata: {name: high}
spec: {priorityClassName: system-node-critical, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	if err := syscall.Kill(s.PID(), syscall.SIGPWR); err != nil {
		t.Fatal(err)
	}
	ready := func(want corev1.ConditionStatus, message string) {
		t.Helper()
		k.nodeUntil("is ready: "+string(want), func(n *corev1.Node) bool {
			i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
			return i >= 0 && n.Status.Conditions[i].Status == want && (message == "" || n.Status.Conditions[i].Message == message)
		})
	}
	ready(corev1.ConditionFalse, "node is shutting down")
	if p := k.Get("high"); p.Status.Phase != corev1.PodRunning {
		t.Errorf("the critical pod did not wait: %s", p.Status.Phase)
	}
	low, high := k.WaitPhase("low", corev1.PodFailed), k.WaitPhase("high", corev1.PodFailed)
	for _, p := range []*corev1.Pod{low, high} {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		if p.Status.Reason != "Terminated" || p.Status.Message != "Pod was terminated in response to imminent node shutdown." ||
			i < 0 || p.Status.Conditions[i].Reason != corev1.PodReasonTerminationByKubelet {
			t.Errorf("%s: %s, %q, %+v", p.Name, p.Status.Reason, p.Status.Message, p.Status.Conditions)
		}
	}
	if first, last := ended(low), ended(high); last.Before(first) {
		t.Errorf("the critical pod ended at %v, the other at %v", last, first)
	}
	k.pod(`
metadata: {name: late}
spec: {nodeName: ` + low.Spec.NodeName + `, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	late := k.WaitPhase("late", corev1.PodFailed)
	if late.Status.Reason != "NodeShutdown" || late.Status.Message != "Pod was rejected as the node is shutting down." {
		t.Errorf("%+v", late.Status)
	}
	if out, err := s.Wherry(k.ctx(), "drain", "--undo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ready(corev1.ConditionTrue, "")
	k.up(`
metadata: {name: again}
spec: {priorityClassName: system-node-critical, containers: [{name: c, command: [sh, -c, IDLE]}]}
`)
	k.calledOff(ready)
	if out, err := s.Wherry(k.ctx(), "drain").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if p := k.Get("again"); p.Status.Phase != corev1.PodFailed {
		t.Errorf("drained, and the pod is %s", p.Status.Phase)
	}
}

func ended(p *corev1.Pod) time.Time {
	if s := p.Status.ContainerStatuses[0].State.Terminated; s != nil {
		return s.FinishedAt.Time
	}
	return time.Time{}
}

// nodeUntil waits until the node is as it is to be.
func (k *kit) nodeUntil(what string, until func(*corev1.Node) bool) {
	k.t.Helper()
	nodes := k.Client.CoreV1().Nodes()
	list, err := nodes.List(k.ctx(), metav1.ListOptions{})
	k.must(err)
	if until(&list.Items[0]) {
		return
	}
	w, err := nodes.Watch(k.ctx(), metav1.ListOptions{ResourceVersion: list.ResourceVersion,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", list.Items[0].Name).String()})
	k.must(err)
	defer w.Stop()
	for e := range w.ResultChan() {
		if n, ok := e.Object.(*corev1.Node); ok && until(n) {
			return
		}
	}
	k.t.Fatalf("the node was not %s", what)
}

// calledOff calls off a drain while it waits for a pod: the drain says so, the node takes pods again, and a pod whose turn had not come stays.
func (k *kit) calledOff(ready func(corev1.ConditionStatus, string)) {
	k.t.Helper()
	k.up(`
metadata: {name: slow}
spec: {terminationGracePeriodSeconds: 5, containers: [{name: c, command: [sh, -c, 'trap "" TERM; while :; do sleep 1; done']}]}
`)
	drain := k.Server.Wherry(k.ctx(), "drain")
	var out strings.Builder
	drain.Stdout, drain.Stderr = &out, &out
	k.must(drain.Start())
	ready(corev1.ConditionFalse, "node is shutting down")
	if text, err := k.Server.Wherry(k.ctx(), "drain", "--undo").CombinedOutput(); err != nil {
		k.t.Fatalf("%v: %s", err, text)
	}
	if err := drain.Wait(); err == nil || !strings.Contains(out.String(), "cancelled (wherry drain --undo)") {
		k.t.Errorf("the drain that was called off: %v: %s", err, out.String())
	}
	ready(corev1.ConditionTrue, "")
	k.WaitPhase("slow", corev1.PodFailed)
	if p := k.Get("again"); p.Status.Phase != corev1.PodRunning {
		k.t.Errorf("its turn had not come, and the pod is %s: %s", p.Status.Phase, p.Status.Message)
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// bound makes a pod that asks for CPUs, created at a minute; with a start time it was taken before.
func bound(name, cpu string, minute int, taken bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(int64(60*minute), 0)}}
	p.Spec.NodeName = "here"
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	if taken {
		p.Status.StartTime = &metav1.Time{Time: time.Unix(int64(60*minute), 0)}
	}
	return p
}

func small(labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here", Labels: labels}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")}
	return n
}

func why(a *admission, p *corev1.Pod) string {
	if r := a.refusal(p.UID); r != nil {
		return r.Reason
	}
	return ""
}

// PL-20: who was there first stays, also over a restart of the agent, and whatever the order in which it hears of its pods.
func TestAdmissionAfterARestart(t *testing.T) {
	unreachable := func(context.Context) (*corev1.Node, []corev1.Pod, error) { return nil, nil, errors.New("unreachable") }
	older, newer := bound("older", "2", 1, false), bound("newer", "2", 2, false)
	began, waits := bound("began", "1", 9, true), bound("waits", "1", 8, true)
	waits.Spec.NodeSelector = map[string]string{"disk": "ssd"} // which the node has lost
	over := bound("over", "4", 0, true)
	over.Status.Phase = corev1.PodSucceeded
	big := bound("big", "5", 7, true) // the node was larger once
	a := newAdmission(unreachable)
	a.setNode(small(nil))
	a.open(t.Context(), []*corev1.Pod{newer, older, began, over, waits})
	for _, p := range []*corev1.Pod{newer, older, began, over, waits} {
		a.judge(t.Context(), p)
		want := map[string]string{"newer": "OutOfcpu"}[p.Name]
		if got := why(a, p); got != want {
			t.Errorf("%s: %q, want %q", p.Name, got, want)
		}
	}
	if a.judge(t.Context(), big); why(a, big) != "" {
		t.Error("a pod that was taken is asked again")
	}
}

// PL-20: room is what pods that have not ended leave; a refusal stands.
func TestAdmissionMakesRoom(t *testing.T) {
	a := newAdmission(func(context.Context) (*corev1.Node, []corev1.Pod, error) { return nil, nil, errors.New("unreachable") })
	a.setNode(small(nil))
	one, two, three := bound("one", "3", 1, false), bound("two", "3", 2, false), bound("three", "3", 3, false)
	a.judge(t.Context(), one)
	a.judge(t.Context(), two)
	ended := one.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	a.count(ended)
	a.judge(t.Context(), two)
	a.count(two) // its own updates
	a.judge(t.Context(), three)
	if why(a, one) != "" || why(a, two) != "OutOfcpu" || why(a, three) != "" {
		t.Errorf("one %q, two %q, three %q", why(a, one), why(a, two), why(a, three))
	}
	a.forget(two.UID)
	a.forget(three.UID)
	a.judge(t.Context(), two)
	if why(a, two) != "" {
		t.Errorf("a new pod of that name: %q", why(a, two))
	}
}

// PL-20: nobody is refused for what is not so any more.
func TestAdmissionLooksAgain(t *testing.T) {
	labelled := small(map[string]string{"disk": "ssd"})
	var there []corev1.Pod
	asked := 0
	a := newAdmission(func(context.Context) (*corev1.Node, []corev1.Pod, error) { asked++; return labelled, there, nil })
	a.setNode(small(nil))
	fits := bound("fits", "1", 1, false)
	a.judge(t.Context(), fits)
	if why(a, fits) != "" || asked != 0 {
		t.Errorf("%q after %d looks", why(a, fits), asked)
	}
	selects := bound("selects", "1", 2, false)
	selects.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	there = []corev1.Pod{*fits, *selects}
	if a.judge(t.Context(), selects); why(a, selects) != "" || asked != 1 {
		t.Errorf("%q after %d looks", why(a, selects), asked)
	}
	large := bound("large", "3", 3, false) // fits as soon as the first one is gone, of which nothing was heard yet
	there = []corev1.Pod{*selects, *large}
	if a.judge(t.Context(), large); why(a, large) != "" {
		t.Errorf("%q", why(a, large))
	}
}

// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

func wanted(name, has, asks string, priority int32, guaranteed bool, since int64) Wanted {
	pod := func(cpu string) *corev1.Pod {
		p := sized(name, priority, cpu, "1Gi", guaranteed)
		p.UID = types.UID(name)
		return p
	}
	w := Wanted{Pod: pod(asks), Allocated: pod(has)}
	if since > 0 {
		w.Since = time.Unix(since, 0)
	}
	return w
}

// PL-14: who asks for other resources has a turn: first who does not ask for more, then by priority, class and time.
func TestInTurn(t *testing.T) {
	all := []Wanted{wanted("late", "1", "2", 0, false, 20), wanted("early", "1", "2", 0, false, 10), wanted("new", "1", "2", 0, false, 0),
		wanted("guaranteed", "1", "2", 0, true, 30), wanted("high", "1", "2", 5, false, 40), wanted("less", "2", "1", 0, false, 50)}
	InTurn(all)
	var got []string
	for _, w := range all {
		got = append(got, w.Pod.Name)
	}
	if want := []string{"less", "high", "guaranteed", "early", "late", "new"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// PL-14: a resize is judged beside the other pods, with what is set aside for them, and what it does not ask more of is no matter.
func TestResizeFits(t *testing.T) {
	n := NewNode(&corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("2")}}})
	p := wanted("p", "1", "1", 0, false, 0)
	other := wanted("other", "2", "3", 0, false, 0)
	n.Add(PlaceAllocated(p.Pod, p.Pod))
	n.Add(PlaceAllocated(other.Pod, other.Allocated))
	for asks, want := range map[string]string{"500m": "", "2": "", "2500m": "Deferred", "5": "Infeasible"} {
		got := ""
		if m := Resize(wanted("p", "1", asks, 0, false, 0), n); m != nil {
			got = m.Reason
		}
		if got != want {
			t.Errorf("%s: %q, want %q", asks, got, want)
		}
	}
	n.Object.Status.Allocatable["cpu"] = resource.MustParse("1")
	if m := Resize(wanted("p", "2", "1500m", 0, false, 0), n); m != nil {
		t.Errorf("less on a node that has become too small: %+v", m)
	}
	if n.Len() != 2 {
		t.Errorf("%d pods are left on the node", n.Len())
	}
}

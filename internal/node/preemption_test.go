// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/node/plan"
)

func critical(name, cpu string, minute int) *corev1.Pod {
	p := bound(name, cpu, minute, false)
	p.Spec.Priority = new(int32(2_000_000_000))
	return p
}

func fresh() *admission {
	a := newAdmission(func(context.Context) (*corev1.Node, []corev1.Pod, error) {
		return nil, nil, errors.New("unreachable")
	})
	a.setNode(small(nil))
	return a
}

// PL-20: a critical pod takes room from others, and begins when they have gone; nobody else gets it, or has to go
// twice.
func TestPreemption(t *testing.T) {
	a := fresh()
	one, two, agent := bound("one", "3", 1, false), bound("two", "1", 2, false), critical("agent", "2", 3)
	for _, p := range []*corev1.Pod{one, two, agent} {
		a.judge(t.Context(), p)
	}
	if why(a, agent) != "" || !a.waits(agent) || a.waits(two) {
		t.Fatalf("agent: %q, waits %v", why(a, agent), a.waits(agent))
	}
	begun := a.victims("two")
	if g := begun["one"]; len(begun) != 1 || g.eviction.Reason != plan.ReasonPreempting ||
		g.eviction.Message != messagePreempted || g.resource != "cpu" || g.begun {
		t.Errorf("evicted %+v", begun)
	}
	if again := a.victims("two"); len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
	if own := a.victims("one"); !own["one"].begun {
		t.Errorf("a new worker is to hear of it, as no news: %+v", own)
	}
	a.count(one) // an update of its status
	late, other := bound("late", "2", 4, false), critical("other", "1", 5)
	if a.judge(t.Context(), late); why(a, late) != "OutOfcpu" {
		t.Errorf("late: %q", why(a, late))
	}
	if a.judge(t.Context(), other); why(a, other) != "" || !a.waits(other) {
		t.Errorf("another critical pod takes what is there, and waits: %q", why(a, other))
	}
	if ready := a.gone("two"); ready != nil {
		t.Errorf("two was not told to go: %v", ready)
	}
	if ready := a.gone("one"); len(ready) != 2 || a.waits(agent) || a.waits(other) {
		t.Errorf("ready: %v", ready)
	}
	if ready := a.gone("one"); ready != nil {
		t.Errorf("gone twice: %v", ready)
	}
}

// PL-20: a critical pod is refused as any other if nobody can make room for it, or if something else is wrong; then
// nobody goes.
func TestPreemptionInVain(t *testing.T) {
	a := fresh()
	other := critical("other", "3", 1)
	low := bound("low", "1", 2, false)
	a.judge(t.Context(), other)
	a.judge(t.Context(), low)
	big, misplaced := critical("big", "2", 3), critical("misplaced", "1", 4)
	misplaced.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	a.judge(t.Context(), big)
	a.judge(t.Context(), misplaced)
	if why(a, big) != "OutOfcpu" || why(a, misplaced) == "" || a.waits(big) || len(a.victims("low")) != 0 {
		t.Errorf("big %q, misplaced %q, told %v", why(a, big), why(a, misplaced), a.victims("low"))
	}
}

// PL-20: an agent that is restarted while room is being made waits for those who were told already; a critical pod that
// is deleted meanwhile does not wait.
func TestPreemptionAfterARestart(t *testing.T) {
	a := fresh()
	leaving, stays, agent := bound("leaving", "3", 1, true), bound("stays", "1", 2, true), critical("agent", "3", 3)
	leaving.Status.Phase, leaving.Status.Reason = corev1.PodRunning, plan.ReasonPreempting
	a.open(t.Context(), []*corev1.Pod{agent, stays, leaving})
	if why(a, agent) != "" || !a.waits(agent) || len(a.victims("leaving")) != 0 {
		t.Errorf("%q, told %v", why(a, agent), a.victims("leaving"))
	}
	deleted := agent.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{}
	if a.waits(deleted) {
		t.Error("it waits though it is to go")
	}
	a.forget("leaving")
	if b := critical("b", "1", 4); a.waits(b) {
		t.Error("nobody is to be waited for")
	}
}

// PL-20, PL-33: nobody has to go for a critical pod that this node could not run if it were empty.
func TestNobodyGoesForWhatDoesNotFit(t *testing.T) {
	a := fresh()
	a.unfit = func(p *corev1.Pod) *fit.Misfit {
		if p.Name != "agent" {
			return nil
		}
		return &fit.Misfit{Reason: "SMTAlignmentError", Message: "half a core"}
	}
	one, agent := bound("one", "1", 1, false), critical("agent", "1", 2)
	for _, p := range []*corev1.Pod{one, agent} {
		a.judge(t.Context(), p)
	}
	if why(a, one) != "" || why(a, agent) != "SMTAlignmentError" {
		t.Errorf("one: %q, agent: %q", why(a, one), why(a, agent))
	}
	if begun := a.victims("other"); len(begun) > 0 {
		t.Errorf("told to go: %+v", begun)
	}
}

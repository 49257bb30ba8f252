// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// listener is a node that only hears events.
type listener struct {
	Node
	heard []string
}

func (l *listener) Announce(_ *corev1.Pod, container string, e plan.Event) {
	l.heard = append(l.heard, fmt.Sprintf("%s %s %s", container, e.Reason, e.Message))
}

// TestAnnounce: what several decisions in a row tell of one topic is one event; when it comes up anew it is another.
func TestAnnounce(t *testing.T) {
	l := &listener{}
	w := &Worker{node: l}
	killing := func(container string) plan.Reason {
		return plan.Reason{Container: container, Event: &plan.Event{Reason: "Killing", Message: "x"}}
	}
	late := func(who string) plan.Reason {
		return plan.Reason{Event: &plan.Event{Warning: true, Reason: "ExceededGracePeriod", Message: who}}
	}
	for _, step := range []struct {
		why  []plan.Reason
		want string
	}{
		{[]plan.Reason{{Text: "waits"}}, ""},
		{[]plan.Reason{killing("a")}, "a Killing x"},
		{[]plan.Reason{killing("a"), {Text: "waits"}, killing("b")}, "b Killing x"},
		{[]plan.Reason{killing("a"), killing("b"), late("a b")}, " ExceededGracePeriod a b"},
		{[]plan.Reason{killing("a"), late("a"), late("a")}, ""},
		{nil, ""},
		{[]plan.Reason{killing("a"), killing("a")}, "a Killing x"},
	} {
		l.heard = nil
		w.announce(step.why)
		if got := strings.Join(l.heard, ","); got != step.want {
			t.Errorf("%v: told %q, want %q", step.why, got, step.want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// DA-05: who debugged a pod of another cluster, with what and how it ended, is read from its events: also when the
// event of the beginning is gone, and whatever else is written there.
func TestRunsOfEvents(t *testing.T) {
	begin := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	event := func(reason string, after time.Duration, note string) corev1.Event {
		return corev1.Event{Reason: reason, FirstTimestamp: metav1.NewTime(begin.Add(after)),
			InvolvedObject: corev1.ObjectReference{Namespace: "shop", Name: "web", UID: "u"},
			ObjectMeta:     metav1.ObjectMeta{Annotations: map[string]string{wire.AnnotationNoted: note}}}
	}
	noted := func(id string, code *int32, why string) string {
		return wire.Noted{ID: id, As: wire.Shell, Container: "main", By: "ann", Command: []string{"ls"}, ExitCode: code,
			Why: why}.Text()
	}
	list := runsOf([]corev1.Event{
		event(wire.EventEnded, 90*time.Second, noted("b", nil, "it was stopped by bob")),
		event(wire.EventStarted, 20*time.Second, noted("a", nil, "")),
		event(wire.EventEnded, 30*time.Second, noted("a", new(int32(3)), "")),
		event("Pulled", 0, noted("c", nil, "")),
		event(wire.EventStarted, 0, "not JSON"),
		event(wire.EventStarted, 0, "{}"),
	}).Items
	if len(list) != 2 {
		t.Fatalf("%d sessions: %+v", len(list), list)
	}
	a, b := list[0], list[1]
	if a.Name != "a" || a.Spec.User != "ann" || a.Spec.Pod.Name != "web" || a.Spec.Target != "main" || *a.Status.ExitCode != 3 ||
		a.Status.FinishedAt.Sub(a.Status.StartedAt.Time) != 10*time.Second {
		t.Errorf("%+v", a)
	}
	if b.Name != "b" || b.Status.StartedAt != nil || b.Status.Reason != "it was stopped by bob" {
		t.Errorf("%+v", b)
	}
}

// FuzzNoted: whatever an event's annotation is, it is a session or none.
func FuzzNoted(f *testing.F) {
	f.Add(wire.Noted{ID: "a", As: wire.Exec, Command: []string{"sh"}}.Text())
	f.Add(`{"id":"x","exitCode":99999999999}`)
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := wire.ParseNoted(text)
		if again, sure := wire.ParseNoted(n.Text()); ok && (!sure || again.ID != n.ID) {
			t.Errorf("%q becomes %q", text, n.Text())
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

// DC-03 DC-06: the container that is attached to is of the very run that was asked for, and one that has started.
func TestStartedIn(t *testing.T) {
	then := time.Unix(1, 0)
	seen := plan.Seen{Containers: []plan.Container{
		{ID: "old", Name: "debug", Attempt: 1, StartedAt: then, FinishedAt: then},
		{ID: "other", Name: "main", Attempt: 2, StartedAt: then},
		{ID: "made", Name: "debug", Attempt: 2, CreatedAt: then},
		{ID: "broken", Name: "debug", Attempt: 3, StartedAt: then, FinishedAt: then, Reason: "StartError"},
		{ID: "runs", Name: "debug", Attempt: 4, StartedAt: then},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	if err := podspec.SetDebugRuns(pod, podspec.DebugRuns{"debug": {Run: 4}}); err != nil {
		t.Fatal(err)
	}
	for run, want := range map[uint32]struct {
		id    string
		fails bool
	}{1: {"old", false}, 2: {"", true}, 3: {"", true}, 4: {"runs", false}, 5: {"", false}} {
		if id, err := startedIn(pod, seen, "debug", run); id != want.id || (err != nil) != want.fails {
			t.Errorf("run %d: %q, %v", run, id, err)
		}
	}
}

// shows is a node that shows one pod, and changes nothing of it.
type shows struct {
	work.Node
	a    *Agent
	seen chan plan.Seen // what is seen from one look on
	last plan.Seen
}

func (n *shows) Observe(context.Context, *corev1.Pod) (plan.Seen, error) {
	select {
	case n.last = <-n.seen:
	default:
	}
	return n.last, nil
}

func (n *shows) Do(ctx context.Context, _ work.Task) error { <-ctx.Done(); return ctx.Err() }

func (n *shows) SaveStatus(_ context.Context, pod *corev1.Pod, _, to *corev1.PodStatus) (*corev1.Pod, error) {
	now := *pod
	now.Status = *to
	return &now, nil
}

func (n *shows) Tell(*corev1.Pod, *corev1.PodStatus, *corev1.PodStatus) { n.a.changes.notify() }
func (n *shows) Announce(*corev1.Pod, string, plan.Event)               {}
func (n *shows) Trace(*corev1.Pod, work.Event)                          {}
func (n *shows) Allocated(p *corev1.Pod) (*corev1.Pod, *plan.Resize)    { return p, nil }

func (n *shows) Refuse(*corev1.Pod) *plan.Refusal { return nil }
func (n *shows) Facts() plan.Node                 { return plan.Node{} }

// DC-03: who waits for a start is told by the runtime's own answer, and if that was lost by what is seen on the node; it is over when
// nobody waits any more. Nothing is kept of those who do not.
func TestStarted(t *testing.T) {
	a := &Agent{}
	ctx, cancel := context.WithCancel(t.Context())
	n := &shows{a: a, seen: make(chan plan.Seen, 1)}
	a.workers = work.NewSet(ctx, n, slog.New(slog.DiscardHandler))
	defer a.workers.Wait()
	defer cancel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid-1", ResourceVersion: "1"}, Spec: corev1.PodSpec{
		NodeName: "one", Containers: []corev1.Container{{Name: "main"}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
	}}
	a.workers.Update(pod)
	h := host{a}
	type answer struct {
		id  string
		err error
	}
	ask := func(ctx context.Context, run uint32) <-chan answer {
		of, out := start{"uid-1", "debug", run}, make(chan answer, 1)
		a.starts.mu.Lock()
		before := len(a.starts.waiting[of])
		a.starts.mu.Unlock()
		go func() {
			id, err := h.Started(ctx, "uid-1", "debug", run)
			out <- answer{id, err}
		}()
		for { // it is one of those who wait; there is no event for that but this map
			a.starts.mu.Lock()
			waits := len(a.starts.waiting[of]) > before
			a.starts.mu.Unlock()
			if waits {
				return out
			}
			time.Sleep(time.Millisecond)
		}
	}
	one, two := ask(ctx, 7), ask(ctx, 7)
	a.starts.notify(pod, "main", 7, "no")
	a.starts.notify(pod, "debug", 6, "no")
	a.starts.notify(pod, "debug", 7, "yes")
	for _, c := range []<-chan answer{one, two} {
		if got := <-c; got != (answer{"yes", nil}) {
			t.Errorf("%+v", got)
		}
	}

	now := time.Now()
	lost := ask(ctx, 0)
	n.seen <- plan.Seen{Sandboxes: []plan.Sandbox{{ID: "box", Ready: true, CreatedAt: now}},
		Containers: []plan.Container{{ID: "seen", Name: "debug", SandboxID: "box", CreatedAt: now, StartedAt: now}}}
	a.workers.Nudge("uid-1")
	if got := <-lost; got != (answer{"seen", nil}) {
		t.Errorf("%+v", got)
	}

	leaving, leave := context.WithCancel(ctx)
	gone := ask(leaving, 8)
	leave()
	if got := <-gone; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v", got)
	}
	if _, err := h.Started(ctx, "uid-2", "debug", 0); err == nil || !strings.Contains(err.Error(), "not on this node") {
		t.Errorf("a pod that is not there: %v", err)
	}
	if len(a.starts.waiting) != 0 {
		t.Errorf("still waited for: %v", a.starts.waiting)
	}
}

// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// TestMayStart (RS-05): a namespace has its own number of pulls, and one registry never has all of them.
func TestMayStart(t *testing.T) {
	running := func(text string) (out []turn) {
		for _, f := range strings.Fields(text) {
			namespace, registry, _ := strings.Cut(f, "/")
			out = append(out, turn{namespace, registry})
		}
		return out
	}
	for _, row := range []struct {
		running, ask string
		parallel     int
		want         bool
	}{
		{"", "a/r", 5, true},
		{"a/r a/r a/r", "a/r", 5, true},
		{"a/r a/r a/r a/r", "a/r", 5, false},
		{"a/r a/r a/r a/r", "a/s", 5, true},
		{"a/r a/r a/r a/r a/s", "a/t", 5, false},
		{"a/r a/r a/r a/r a/s", "b/r", 5, true},
		{"", "a/r", 1, true},
		{"a/r", "a/s", 1, false},
	} {
		if got := mayStart(running(row.ask)[0], running(row.running), row.parallel); got != row.want {
			t.Errorf("%s beside %q, %d at once: %v", row.ask, row.running, row.parallel, got)
		}
	}
}

// TestHangingRegistry (RS-05): any number of pulls from a registry that does not answer hold up neither those of other namespaces, nor
// the same namespace's from other registries; nor does a pull that one namespace waits to begin hold up another that wants the same image.
// ATTACK B16.
func TestHangingRegistry(t *testing.T) {
	w := start(t, Config{})
	hung := make(chan struct{}, 100)
	w.script = func(ctx context.Context, image, _ string) error {
		if strings.HasPrefix(image, "hang.test/") {
			hung <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	ctx, callOff := context.WithCancel(t.Context())
	var all sync.WaitGroup
	pull := func(ctx context.Context, namespace, image string) error {
		p := podOf("p")
		p.Namespace = namespace
		_, err := w.Ensure(ctx, p, container(image, corev1.PullAlways))
		return err
	}
	for i := range 25 {
		all.Go(func() { _ = pull(ctx, "eve", fmt.Sprint("hang.test/i:", i)) })
	}
	for range DefaultParallel - 1 {
		<-hung
	}
	w.waitRiders(t, 25)
	for _, p := range []struct{ namespace, image string }{{"jane", "good.test/i:1"}, {"eve", "good.test/i:2"}} {
		if err := pull(t.Context(), p.namespace, p.image); err != nil {
			t.Errorf("%s in namespace %s: %v", p.image, p.namespace, err)
		}
	}
	callOff()
	all.Wait()
}

// TestJoinedTurn (RS-05): a pull that waits for a turn of its namespace begins at once if another namespace wants it too.
func TestJoinedTurn(t *testing.T) {
	q := &turns{parallel: 1}
	first, second := newWaiter(), newWaiter()
	q.join(first, turn{"a", "r"})
	over, err := q.wait(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	q.join(second, turn{"a", "s"})
	begun := make(chan func())
	go func() {
		over, err := q.wait(t.Context(), second)
		if err != nil {
			t.Error(err)
		}
		begun <- over
	}()
	q.join(second, turn{"b", "s"})
	overSecond := <-begun
	if second.charge != (turn{"b", "s"}) {
		t.Errorf("charged to %v", second.charge)
	}
	overSecond()
	over()
	if len(q.running) > 0 || len(q.waiting) > 0 {
		t.Errorf("left: %v, %v", q.running, q.waiting)
	}
}

// TestNoProgress (RS-05): a runtime that gives up a pull says only that it was cancelled; the message says why.
func TestNoProgress(t *testing.T) {
	w := start(t, Config{})
	w.script = func(context.Context, string, string) error {
		return status.Error(codes.Canceled, `failed to pull and unpack image "hang.test/i:1": context canceled`)
	}
	_, err := w.Ensure(t.Context(), podOf("p"), container("hang.test/i:1", corev1.PullAlways))
	if err == nil || !strings.Contains(err.Error(), "registry hang.test sent nothing, or next to nothing, for too long") || !strings.Contains(err.Error(), "--image-pull-progress-deadline") {
		t.Errorf("%v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case ev, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return ev
	case <-time.After(time.Minute):
		t.Fatal("no event within a minute")
		return watch.Event{}
	}
}

// A watch that asks for it begins with what is there and a bookmark that says so, then follows; selectors turn changes
// into additions and deletions.
func TestWatchListAndFollow(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods := c.CoreV1().Pods(ns)
	createPod(t, c, ns, pod("old"))
	w, err := pods.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, FieldSelector: "spec.nodeName=",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if ev := next(t, w); ev.Type != watch.Added || ev.Object.(*corev1.Pod).Name != "old" {
		t.Fatalf("first %s %v", ev.Type, ev.Object)
	}
	ev := next(t, w)
	if m, ok := ev.Object.(*corev1.Pod); ev.Type != watch.Bookmark || !ok ||
		m.Annotations[metav1.InitialEventsAnnotationKey] != "true" || m.ResourceVersion == "" {
		t.Fatalf("then %s %v", ev.Type, ev.Object)
	}
	p := createPod(t, c, ns, pod("new"))
	if ev := next(t, w); ev.Type != watch.Added || ev.Object.(*corev1.Pod).ResourceVersion != p.ResourceVersion {
		t.Fatalf("created: %s %v", ev.Type, ev.Object)
	}
	if err := bindPod(t, c, p, "n"); err != nil {
		t.Fatal(err)
	}
	if ev := next(t, w); ev.Type != watch.Deleted || ev.Object.(*corev1.Pod).Name != "new" { // it left the selection
		t.Fatalf("bound: %s %v", ev.Type, ev.Object)
	}
	if err := pods.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A pod's deletion is two writes, the mark and the removal, as with any API server.
	if ev := next(t, w); ev.Type != watch.Modified || ev.Object.(*corev1.Pod).DeletionTimestamp == nil {
		t.Fatalf("marked: %s %v", ev.Type, ev.Object)
	}
	if ev := next(t, w); ev.Type != watch.Deleted || ev.Object.(*corev1.Pod).Name != "old" {
		t.Fatalf("deleted: %s %v", ev.Type, ev.Object)
	}
}

// A watch resumes from a version it has seen and repeats nothing; a version from before a compaction is 410 Gone.
func TestWatchResumes(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	cms := c.CoreV1().ConfigMaps(ns)
	var versions []string
	for _, name := range []string{"a", "b", "c"} {
		cm, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, cm.ResourceVersion)
	}
	w, err := cms.Watch(t.Context(), metav1.ListOptions{ResourceVersion: versions[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []string{"b", "c"} {
		if ev := next(t, w); ev.Type != watch.Added || ev.Object.(*corev1.ConfigMap).Name != want {
			t.Fatalf("got %s %v, want %s", ev.Type, ev.Object, want)
		}
	}
	if _, err := cms.List(t.Context(), metav1.ListOptions{ResourceVersion: "999999999",
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}); !apierrors.IsTimeout(err) &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("a version of the future: %v", err)
	}
}

// An event comes with the answer to the write that made it: milliseconds, not a poll's interval.
func TestWatchLatency(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	w, err := c.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var took []time.Duration
	for i := range 20 {
		name := string(rune('a' + i))
		began := time.Now()
		if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		answered := time.Since(began)
		next(t, w)
		took = append(took, time.Since(began)-answered)
	}
	slices.Sort(took)
	t.Logf("event after the answer: median %v, worst %v", took[10], took[19])
	if took[5] > 50*time.Millisecond { // by a poll, no more than chance would have it
		t.Errorf("median %v", took[10])
	}
}

// Informers over the in-memory connection sync and follow, as the controllers and the node agent use them.
func TestInformerOverLoopback(t *testing.T) {
	c := clientOf(t, shared.srv.Loopback())
	ns := namespace(t, c)
	createPod(t, c, ns, pod("before"))
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(ns))
	seen := make(chan string, 10)
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen <- "add " + o.(*corev1.Pod).Name },
		DeleteFunc: func(o any) { seen <- "delete " + o.(*corev1.Pod).Name },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	if got := <-seen; got != "add before" {
		t.Errorf("first %q", got)
	}
	createPod(t, c, ns, pod("after"))
	if got := <-seen; got != "add after" {
		t.Errorf("then %q", got)
	}
	if err := c.CoreV1().Pods(ns).Delete(ctx, "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "delete before" {
		t.Errorf("then %q", got)
	}
}

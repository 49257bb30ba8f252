// SPDX-License-Identifier: Apache-2.0

package firsts_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/api/firsts"
)

func owned(kind, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, APIVersion: version, Name: "o"}}}}
}

// TestFirsts: WL-06, who waits is called once, at what he waits for, and not when he has left.
func TestFirsts(t *testing.T) {
	b := &firsts.Board{}
	var said []string
	wait := func(name string, kind schema.GroupResource, is func(schema.GroupResource,
		runtime.Object) bool) (leave func()) {
		return b.Await(firsts.Wait{Kind: kind, If: is,
			Then: func(k schema.GroupResource) { said = append(said, name+" "+k.String()) }})
	}
	pods, jobs := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	wait("a", pods, nil)
	wait("b", pods, nil)
	wait("c", schema.GroupResource{}, firsts.Collectable)
	leave := wait("d", jobs, nil)
	writes := 0
	b.Await(firsts.Wait{Then: func(schema.GroupResource) { writes++ }, Keep: true})
	b.Wrote(pods, &corev1.Pod{})
	b.Wrote(pods, owned("Node", "v1"))
	b.Wrote(pods, owned("Job", "batch/v1"))
	b.Wrote(pods, owned("Job", "batch/v1"))
	wait("e", pods, nil)
	leave()
	b.Wrote(jobs, &corev1.Pod{})
	b.Wrote(pods, &corev1.Pod{})
	if want := []string{"a pods", "b pods", "c pods", "e pods"}; !slices.Equal(said, want) {
		t.Errorf("heard %v, want %v", said, want)
	}
	if writes != 6 {
		t.Errorf("who keeps waiting was called %d times for 6 writes", writes)
	}
	var nobody *firsts.Board
	nobody.Wrote(pods, &corev1.Pod{})
	nobody.Await(firsts.Wait{})()
}

// TestRacingFirsts: WL-06, writers that race call who waits once.
func TestRacingFirsts(t *testing.T) {
	b, pods := &firsts.Board{}, schema.GroupResource{Resource: "pods"}
	var calls atomic.Int32
	for range 50 {
		b.Await(firsts.Wait{Kind: pods, Then: func(schema.GroupResource) { calls.Add(1) }})
	}
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() { b.Wrote(pods, &corev1.Pod{}) })
	}
	writers.Wait()
	if n := calls.Load(); n != 50 {
		t.Errorf("%d calls for 50 who wait", n)
	}
}

// TestCollectable: WL-04, what the garbage collector is needed for.
func TestCollectable(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		obj  metav1.ObjectMeta
		want bool
	}{
		"nobody's":            {metav1.ObjectMeta{}, false},
		"a node's":            {owned("Node", "v1").ObjectMeta, false},
		"a custom Node's":     {owned("Node", "example.com/v1").ObjectMeta, true},
		"somebody's":          {owned("ConfigMap", "v1").ObjectMeta, true},
		"held by a finalizer": {metav1.ObjectMeta{Finalizers: []string{metav1.FinalizerOrphanDependents}}, false},
		"orphans its own": {metav1.ObjectMeta{DeletionTimestamp: &deleted,
			Finalizers: []string{metav1.FinalizerOrphanDependents}}, true},
		"goes last": {metav1.ObjectMeta{DeletionTimestamp: &deleted,
			Finalizers: []string{metav1.FinalizerDeleteDependents}}, true},
		"another's finalizer": {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{"example.com/x"}},
			false},
	} {
		if got := firsts.Collectable(schema.GroupResource{}, &corev1.Pod{ObjectMeta: tc.obj}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

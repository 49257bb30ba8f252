// SPDX-License-Identifier: Apache-2.0

package firsts_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherryproject/wherry/internal/api/firsts"
)

type heard struct{ said []string }

func (h *heard) Kind(k schema.GroupResource) { h.said = append(h.said, k.String()) }
func (h *heard) Owned()                      { h.said = append(h.said, "owned") }

func owned(kind, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, APIVersion: version, Name: "o"}}}}
}

// TestFirsts: WL-06, each first is told once, also to who comes later, and not to who has left.
func TestFirsts(t *testing.T) {
	b, early, late := &firsts.Board{}, &heard{}, &heard{}
	leave := b.Subscribe(early)
	pods, jobs := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	b.Wrote(pods, &corev1.Pod{})
	b.Wrote(pods, owned("Node", "v1"))
	b.Wrote(pods, owned("Job", "batch/v1"))
	b.Wrote(pods, owned("Job", "batch/v1"))
	b.Subscribe(late)
	leave()
	b.Wrote(jobs, &corev1.Pod{})
	if want := []string{"pods", "owned"}; !slices.Equal(early.said, want) {
		t.Errorf("the first heard %v, want %v", early.said, want)
	}
	if want := []string{"pods", "owned", "jobs.batch"}; !slices.Equal(late.said, want) {
		t.Errorf("the second heard %v, want %v", late.said, want)
	}
	var nobody *firsts.Board
	nobody.Wrote(pods, &corev1.Pod{})
	nobody.Subscribe(early)()
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
		"orphans its own":     {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{metav1.FinalizerOrphanDependents}}, true},
		"goes last":           {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{metav1.FinalizerDeleteDependents}}, true},
		"another's finalizer": {metav1.ObjectMeta{DeletionTimestamp: &deleted, Finalizers: []string{"example.com/x"}}, false},
	} {
		if got := firsts.Collectable(&tc.obj); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

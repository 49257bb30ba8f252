// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// RS-03, ATTACK B26: custom resources count: their number, and what they take in the store; when they are made, when
// they grow, by a subresource too, and however many are made at once. What is deleted is free again, and a quota that
// is made later finds what is there. What is only tried is judged the same, and takes nothing.
func TestQuotaOfCustomResources(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	e := define(t, adminConfig(t), widgets)
	widgets := e.Resource(schema.GroupVersionResource{Group: e.group, Version: "v1", Resource: "widgets"}).Namespace(ns)
	of := func(name string, bytes int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": e.group + "/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{"a": strings.Repeat("x", bytes)}},
			"spec":     map[string]any{"color": "red"}}}
	}
	create := func(name string, bytes int) error {
		_, err := widgets.Create(t.Context(), of(name, bytes), metav1.CreateOptions{})
		return err
	}
	fine(t, "before there is a quota", create("early", 100_000))
	newQuota(t, c, ns, hard("wherry.dev/stored-bytes", "1Mi", "count/widgets."+e.group, "6"))

	var made atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := create(fmt.Sprint("w", i), 200_000); err == nil {
				made.Add(1)
			} else if !apierrors.IsForbidden(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 4 {
		t.Errorf("%d of 200 kB fit into 1 MiB beside one of 100 kB", made.Load())
	}
	fine(t, "a small one", create("small", 100))
	refusedFor(t, create("seventh", 100), "count/widgets."+e.group)
	change := func(name, text string, o metav1.PatchOptions, below ...string) error {
		_, err := widgets.Patch(t.Context(), name, types.MergePatchType, []byte(text), o, below...)
		return err
	}
	patch := func(name, text string, below ...string) error {
		return change(name, text, metav1.PatchOptions{}, below...)
	}
	tried := func(name string, bytes int) error {
		_, err := widgets.Create(t.Context(), of(name, bytes), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	refusedFor(t, tried("seventh", 100), "count/widgets."+e.group)
	large := strings.Repeat("y", 200_000)
	refusedFor(t, patch("small", `{"metadata":{"annotations":{"b":"`+large+`"}}}`), "wherry.dev/stored-bytes")
	refusedFor(t, change("small", `{"metadata":{"annotations":{"b":"`+large+`"}}}`,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}), "wherry.dev/stored-bytes")
	refusedFor(t, patch("small", `{"status":{"phase":"`+large+`"}}`, "status"), "wherry.dev/stored-bytes")
	fine(t, "one that shrinks", patch("early", `{"metadata":{"annotations":{"a":null}}}`))
	fine(t, "a status that is small", patch("early", `{"status":{"phase":"well"}}`, "status"))
	if err := widgets.DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "metadata.name!=small"}); err != nil {
		t.Fatal(err)
	}
	fine(t, "after the others were deleted", patch("small", `{"metadata":{"annotations":{"b":"`+large+`"}}}`))
	for i := range 8 { // more than there is room for, if trying took any
		fine(t, "one that is only tried", tried(fmt.Sprint("tried", i), 200_000))
	}
	fine(t, "another", create("late", 200_000))
}

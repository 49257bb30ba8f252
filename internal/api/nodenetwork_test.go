// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/membership"
)

// WL-20: a node's agent follows where pods and nodes are by an informer, is told nothing else of them, and others are
// told nothing.
func TestNodeNetwork(t *testing.T) {
	w := newNodeWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan corev1.Pod, 64)
	informer := cache.NewSharedIndexInformer(membership.Pods(w.agent), &corev1.Pod{}, 0, cache.Indexers{})
	tell := func(obj any) {
		if p, ok := obj.(*corev1.Pod); ok && p.Namespace == w.ns {
			heard <- *p
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell,
		UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	defer func() { cancel(); <-done }()
	until := func(what string, ok func(p corev1.Pod) bool) {
		t.Helper()
		for {
			select {
			case p := <-heard:
				if len(p.Spec.Volumes) > 0 || len(p.Spec.Containers) > 0 || p.Spec.ServiceAccountName != "" {
					t.Fatalf("too much is told: %+v", p.Spec)
				}
				if ok(p) {
					return
				}
			case <-t.Context().Done():
				t.Fatalf("%s is not told", what)
			}
		}
	}
	until("another node's pod", func(p corev1.Pod) bool { return p.Name == "theirs" && p.Spec.NodeName == w.two })
	_, err := w.admin.CoreV1().Pods(w.ns).Patch(ctx, "theirs", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	fine(t, "label", err)
	until("its label", func(p corev1.Pod) bool { return p.Name == "theirs" && p.Labels["a"] == "b" })

	list, err := cache.ToListerWatcherWithContext(membership.Nodes(w.agent)).ListWithContext(ctx, metav1.ListOptions{})
	fine(t, "nodes", err)
	names := ""
	for _, n := range list.(*corev1.NodeList).Items {
		names += " " + n.Name
	}
	if !strings.Contains(names, w.two) {
		t.Errorf("the nodes are %s", names)
	}
	raw := w.agent.CoreV1().RESTClient()
	text, err := raw.Get().AbsPath(nodenetwork.Path).DoRaw(ctx)
	var c nodenetwork.Cluster
	if fine(t, "the cluster", err); json.Unmarshal(text, &c) != nil || len(c.ServiceCIDRs) != 1 {
		t.Errorf("of the cluster is told %s", text)
	}
	for query, want := range map[string]string{"?labelSelector=a": "takes no selectors",
		"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": "has no streaming lists",
		"?limit=x": "invalid syntax"} {
		if text, err := raw.Get().RequestURI(nodenetwork.PodsPath + query).DoRaw(ctx); err == nil ||
			!strings.Contains(string(text), want) {
			t.Errorf("%s: %s, want %q", query, text, want)
		}
	}
	if _, err := raw.Post().AbsPath(nodenetwork.PodsPath).DoRaw(ctx); err == nil {
		t.Error("it can be written")
	}
	jane := clientOf(t, person(t, shared.srv, "jane"))
	for _, path := range []string{nodenetwork.Path, nodenetwork.PodsPath, nodenetwork.NodesPath} {
		if text, err := jane.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx); !apierrors.IsForbidden(err) {
			t.Errorf("somebody is told %s: %s, %v", path, text, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/hex"
	"fmt"
	"math/rand"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/store"
)

// smallStore is a server of its own whose store may hold as little as any.
func smallStore(t *testing.T) (admin, node kubernetes.Interface) {
	t.Helper()
	dir := t.TempDir()
	e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd"), Quota: store.MinQuota})
	if err != nil {
		t.Fatal(err)
	}
	s, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{e.Endpoint()},
		Room: e})
	t.Cleanup(func() {
		stop()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := s.As("system:node:n", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, configOf(t, s)), clientOf(t, config)
}

func sized(name string, size int) *corev1.ConfigMap {
	half := make([]byte, size/2)
	for i := range half {
		half[i] = byte(rand.Int())
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string]string{"a": hex.EncodeToString(half)}}
}

// isFull reports whether err is the refusal of a full store.
func isFull(err error) bool {
	s := apierrors.APIStatus(nil)
	return err != nil && asStatus(err, &s) && s.Status().Code == http.StatusInsufficientStorage &&
		strings.Contains(err.Error(), "delete objects")
}

func asStatus(err error, to *apierrors.APIStatus) (ok bool) {
	*to, ok = err.(apierrors.APIStatus)
	return ok
}

// TestFullStore proves RS-03: into a full store nobody can put more, deletions of every kind and what the node says of
// them get through, and when objects are gone it takes everything again. Before, the first object too many ended all
// writes for ever. ATTACK B10.
func TestFullStore(t *testing.T) {
	c, node := smallStore(t)
	ctx := t.Context()
	ns := namespace(t, c)
	maps := c.CoreV1().ConfigMaps(ns)
	if _, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := pod("bound")
	bound.Spec.NodeName = "n"
	bound = createPod(t, c, ns, bound)
	held := sized("held", 1000)
	held.Finalizers = []string{"example.com/held"}
	held, err := maps.Create(ctx, held, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Many write at once: what etcd has not counted yet is a good part of so small a store.
	const writers, each = 16, 6
	var filling sync.WaitGroup
	for w := range writers {
		filling.Go(func() {
			for n := range each {
				if _, err := maps.Create(ctx, sized(fmt.Sprintf("m%d-%d", w, n), 1_000_000),
					metav1.CreateOptions{}); isFull(err) {
					return
				} else if err != nil {
					t.Errorf("object %d of writer %d: %v", n, w, err)
					return
				}
			}
			t.Errorf("%d MB in a store of 24 MiB", writers*each)
		})
	}
	filling.Wait()

	held.Data["more"] = strings.Repeat("x", 1000)
	if _, err := maps.Update(ctx, held, metav1.UpdateOptions{}); !isFull(err) {
		t.Errorf("an object that grows: %v", err)
	}
	delete(held.Data, "more")
	held.Data["a"] = "less"
	if _, err := maps.Update(ctx, held, metav1.UpdateOptions{}); err != nil {
		t.Errorf("an object that gets smaller: %v", err)
	}
	if err := maps.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deletion of an object with a finalizer: %v", err)
	}
	if _, err := maps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("removal of the finalizer: %v", err)
	}
	if err := c.CoreV1().Pods(ns).Delete(ctx, "bound", metav1.DeleteOptions{}); err != nil {
		t.Errorf("graceful deletion of a pod: %v", err)
	}
	if left, err := c.CoreV1().Pods(ns).Get(ctx, "bound", metav1.GetOptions{}); err != nil ||
		left.DeletionTimestamp == nil {
		t.Errorf("the pod was to end in its time: %v", err)
	}
	bound.Status.Message = "ending"
	bound.ResourceVersion = ""
	if _, err := node.CoreV1().Pods(ns).UpdateStatus(ctx, bound, metav1.UpdateOptions{}); err != nil {
		t.Errorf("the node says what becomes of the pod: %v", err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if _, err := node.CoordinationV1().Leases("kube-node-lease").Create(ctx, lease,
		metav1.CreateOptions{}); err != nil {
		t.Errorf("the node says that it lives: %v", err)
	}

	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatalf("deletion of all: %v", err)
	}
	if _, err := maps.Create(ctx, sized("after", 1_000_000), metav1.CreateOptions{}); err != nil {
		t.Errorf("after the deletion: %v", err)
	}
}

// TestFullOfHistory proves RS-03: one object that is written again and again does not fill the store.
func TestFullOfHistory(t *testing.T) {
	c, _ := smallStore(t)
	maps := c.CoreV1().ConfigMaps(namespace(t, c))
	if _, err := maps.Create(t.Context(), sized("m", 1_000_000), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if _, err := maps.Update(t.Context(), sized("m", 1_000_000), metav1.UpdateOptions{}); err != nil {
			t.Fatalf("update %d: %v", i, err)
		}
	}
}

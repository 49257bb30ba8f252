// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// manyPods makes n pods at once: copies of a stored one, whose names and identities have the same length, written to
// the store itself.
func manyPods(t *testing.T, c kubernetes.Interface, ns string, n int) {
	t.Helper()
	etcd := etcdClient(t)
	first := createPod(t, c, ns, pod("p-00000"))
	key := path.Join("/registry/pods", ns, first.Name)
	r, err := etcd.Get(t.Context(), key)
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, r, err)
	}
	var ops []clientv3.Op
	for i := 1; i < n; i++ {
		name := fmt.Sprintf("p-%05d", i)
		value := bytes.ReplaceAll(r.Kvs[0].Value, []byte(first.Name), []byte(name))
		uid := fmt.Sprintf("%08d%s", i, first.UID[8:])
		value = bytes.ReplaceAll(value, []byte(first.UID), []byte(uid))
		ops = append(ops, clientv3.OpPut(path.Join("/registry/pods", ns, name), string(value)))
		if len(ops) == 100 || i == n-1 {
			if _, err := etcd.Txn(t.Context()).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
	t.Cleanup(func() {
		if _, err := etcd.Delete(context.WithoutCancel(t.Context()), path.Join("/registry/pods", ns)+"/",
			clientv3.WithPrefix()); err != nil {
			t.Error(err)
		}
	})
}

// A list of 5,000 pods in chunks is one list: of one version, complete, without doubles, in order, whatever is written
// meanwhile. When the store has forgotten that version the client is told (410), and how to go on.
func TestListInChunks(t *testing.T) {
	const all, chunk = 5000, 500
	c := client(t)
	ns := namespace(t, c)
	manyPods(t, c, ns, all)
	pods := c.CoreV1().Pods(ns)
	options := metav1.ListOptions{Limit: chunk}
	version, seen := "", 0
	for {
		page, err := pods.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if version == "" {
			version = page.ResourceVersion
		}
		if page.ResourceVersion != version {
			t.Errorf("a chunk of version %s in a list of %s", page.ResourceVersion, version)
		}
		for i := range page.Items {
			if want := fmt.Sprintf("p-%05d", seen); page.Items[i].Name != want {
				t.Fatalf("pod %d is %s", seen, page.Items[i].Name)
			}
			seen++
		}
		if left := ptr.Deref(page.RemainingItemCount, 0); left != int64(all-seen) {
			t.Errorf("after %d pods %d remain", seen, left)
		}
		if page.Continue == "" {
			break
		}
		if seen == chunk { // what happens now is not in this list
			createPod(t, c, ns, pod("p-00500-new"))
			if err := pods.Delete(t.Context(), "p-04999",
				metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
				t.Fatal(err)
			}
		}
		options.Continue = page.Continue
	}
	if seen != all {
		t.Errorf("%d pods", seen)
	}

	page, err := pods.List(t.Context(), metav1.ListOptions{Limit: chunk})
	if err != nil {
		t.Fatal(err)
	}
	createPod(t, c, ns, pod("q"))
	compact(t, etcdClient(t))
	_, err = pods.List(t.Context(), metav1.ListOptions{Limit: chunk, Continue: page.Continue})
	status, ok := err.(apierrors.APIStatus)
	if !apierrors.IsResourceExpired(err) || !ok || status.Status().Continue == "" {
		t.Fatalf("an expired token: %v", err)
	}
	rest, err := pods.List(t.Context(), metav1.ListOptions{Continue: status.Status().Continue})
	// p-04999 is gone, p-00500-new and q came
	if err != nil || len(rest.Items) != all-chunk+1 || rest.Items[0].Name != "p-00500" {
		t.Errorf("going on from a newer version: %d pods, %v", len(rest.Items), err)
	}
}

// Lists and watches take resource versions by Kubernetes' rules, and refuse what makes no sense.
func TestResourceVersions(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	cms := c.CoreV1().ConfigMaps(ns)
	make := func(name string) string {
		cm, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"l": name}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm.ResourceVersion
	}
	first := make("a")
	second := make("b")
	for _, row := range []struct {
		options metav1.ListOptions
		want    string // names, or an error's words
	}{
		{metav1.ListOptions{}, "a b"},
		{metav1.ListOptions{ResourceVersion: "0"}, "a b"},
		{metav1.ListOptions{ResourceVersion: first}, "a b"},
		{metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			"a b"},
		{metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: metav1.ResourceVersionMatchExact}, "a"},
		{metav1.ListOptions{ResourceVersion: second, ResourceVersionMatch: metav1.ResourceVersionMatchExact}, "a b"},
		{metav1.ListOptions{ResourceVersion: first, Limit: 5}, "a"},
		{metav1.ListOptions{LabelSelector: "l=b", Limit: 1}, "b"},
		{metav1.ListOptions{LabelSelector: "l in (a,c),!x"}, "a"},
		{metav1.ListOptions{FieldSelector: "metadata.name!=a"}, "b"},
		{metav1.ListOptions{ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
			"resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""},
		{metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact},
			"resourceVersionMatch is forbidden unless resourceVersion is provided"},
		{metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: "Newest"}, "supported values"},
		{metav1.ListOptions{ResourceVersion: "x"}, "Invalid value"},
		{metav1.ListOptions{SendInitialEvents: ptr.To(true)}, "sendInitialEvents is forbidden for list"},
		{metav1.ListOptions{Continue: "rubbish"}, "continue key is not valid"},
		{metav1.ListOptions{LabelSelector: "a in"}, "unable to parse requirement"},
		{metav1.ListOptions{FieldSelector: "spec.x=1"}, "is not a known field selector"},
	} {
		list, err := cms.List(t.Context(), row.options)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for i := range list.Items {
				got += list.Items[i].Name + " "
			}
		}
		if got = strings.TrimSpace(got); got != row.want && (err == nil || !strings.Contains(got, row.want)) {
			t.Errorf("%+v: %s, want %s", row.options, got, row.want)
		}
	}
	for _, row := range []struct {
		options metav1.ListOptions
		want    string
	}{
		{metav1.ListOptions{SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true}, "resourceVersionMatch"},
		{metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
			"supported values"},
		{metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
			"resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
		{metav1.ListOptions{SendInitialEvents: ptr.To(true),
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, ResourceVersion: first}, ""},
	} {
		w, err := cms.Watch(t.Context(), row.options)
		if err == nil {
			w.Stop()
		}
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("watch %+v: %v, want %q", row.options, err, row.want)
		}
	}
}

// A watch ends when its time is over; one from a version that the store has forgotten is told 410, at once or as its
// first event.
func TestWatchEnds(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	cms := c.CoreV1().ConfigMaps(ns)
	cm, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := cms.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1),
		ResourceVersion: cm.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case ev, open := <-w.ResultChan():
		if open {
			t.Errorf("event %v", ev)
		}
	case <-time.After(time.Minute):
		t.Error("a watch of one second lasts")
	}
	cm.Data = map[string]string{"a": "b"}
	if _, err := cms.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	compact(t, etcdClient(t))
	w, err = cms.Watch(t.Context(), metav1.ListOptions{ResourceVersion: cm.ResourceVersion})
	if err == nil {
		defer w.Stop()
		if ev := next(t, w); ev.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(ev.Object)) {
			t.Errorf("%s %v", ev.Type, ev.Object)
		}
	} else if !apierrors.IsResourceExpired(err) {
		t.Error(err)
	}
}

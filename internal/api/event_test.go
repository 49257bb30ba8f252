// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Events live for an hour: the store forgets them by itself.
func TestEventTTL(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	if _, err := c.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: ns, Name: "p"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{shared.etcd.Endpoint()}, DialTimeout: 5 * time.Second,
		Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	got, err := etcd.Get(t.Context(), "/registry/events/"+ns+"/e")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("in the store: %v, %v", got, err)
	}
	if !strings.HasPrefix(string(got.Kvs[0].Value), "k8s\x00") {
		t.Error("it is not stored as protobuf")
	}
	lease, err := etcd.TimeToLive(t.Context(), clientv3.LeaseID(got.Kvs[0].Lease))
	if err != nil {
		t.Fatal(err)
	}
	// The library shares leases between events of a minute, so the time is a little longer.
	if lease.TTL < 3500 || lease.TTL > 3800 {
		t.Errorf("time to live %d s", lease.TTL)
	}
}

// Both event APIs show the same events, each in its own words; selectors work in both.
func TestEventAPIsShareStorage(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	now := metav1.NowMicro()
	if _, err := c.EventsV1().Events(ns).Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "new"}, EventTime: now, ReportingController: "wherry.dev/test",
		ReportingInstance: "test-1", Action: "Testing", Reason: "Tested", Type: "Warning", Note: "it works",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "p", UID: "u"},
		Series:    &eventsv1.EventSeries{Count: 3, LastObservedTime: now},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	old, err := c.CoreV1().Events(ns).Get(t.Context(), "new", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if old.Message != "it works" || old.InvolvedObject.Name != "p" || old.Series == nil || old.Series.Count != 3 ||
		old.ReportingController != "wherry.dev/test" {
		t.Errorf("as core event: %+v", old)
	}
	if _, err := c.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "old"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns,
			Name: "q"},
		Reason: "Pulled", Type: "Normal", Source: corev1.EventSource{Component: "kubelet", Host: "n"}, Count: 2,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		"involvedObject.name=p": "new", "involvedObject.uid=u": "new", "involvedObject.kind=Pod": "new old",
		"reason=Pulled": "old", "type=Warning": "new", "source=kubelet": "old",
		"reportingComponent=wherry.dev/test": "new", "involvedObject.namespace=" + ns: "new old",
	} {
		list, err := c.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		var names []string
		for _, e := range list.Items {
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
	list, err := c.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=q"})
	if err != nil || len(list.Items) != 1 || list.Items[0].DeprecatedSource.Component != "kubelet" ||
		list.Items[0].DeprecatedCount != 2 {
		t.Errorf("as events.k8s.io: %v, %v", list, err)
	}
	w, err := c.EventsV1().Events(ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=q"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e, ok := next(t, w).Object.(*eventsv1.Event); !ok || e.Name != "old" {
		t.Errorf("watch gave %v", e)
	}
}

// RS-03, ATTACK B21: an event of a user's is small, whichever API it is written by, and cannot grow: no quota counts
// events.
func TestEventsAreSmall(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	event := func(name string, n int) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns,
			Annotations: map[string]string{"a": strings.Repeat("x", n)}},
			InvolvedObject: corev1.ObjectReference{Namespace: ns, Name: "p"}}
	}
	if _, err := c.CoreV1().Events(ns).Create(t.Context(), event("large", 20_000),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("one of 20 kB: %v", err)
	}
	if _, err := c.EventsV1().Events(ns).Create(t.Context(),
		&eventsv1.Event{ObjectMeta: event("new", 20_000).ObjectMeta, EventTime: metav1.NowMicro(),
			ReportingController: "x.example/y", ReportingInstance: "i", Action: "a", Reason: "r", Type: "Normal",
			Regarding: corev1.ObjectReference{Namespace: ns, Name: "p"}},
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("one of 20 kB by events.k8s.io: %v", err)
	}
	small, err := c.CoreV1().Events(ns).Create(t.Context(), event("small", 2000), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	small.Message = strings.Repeat("x", 20_000)
	if _, err := c.CoreV1().Events(ns).Update(t.Context(), small, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("one that grows: %v", err)
	}
}

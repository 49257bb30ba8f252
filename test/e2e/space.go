// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Timeout bounds every wait. It is generous: machines are busy, and it says "never", not "slow".
const Timeout = 90 * time.Second

// Space is a namespace of its own for one test. At the test's end the namespace is deleted and checked to have left
// nothing on the node. Methods fail the test themselves.
type Space struct {
	*Server
	T         testing.TB
	Namespace string
	ctx       context.Context
	kubectl   Kubectl
	seen      *seen
}

// seen remembers the last state of every pod of a namespace, by watching.
type seen struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

func (s *seen) note(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[pod.UID] = pod
}

// Space makes a namespace for t.
func (s *Server) Space(t testing.TB) *Space {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	sp := &Space{
		Server: s, T: t, ctx: ctx, kubectl: s.World.Kubectls[0],
		Namespace: "t-" + strings.ToLower(rand.Text()[:8]),
		seen:      &seen{pods: map[types.UID]*corev1.Pod{}},
	}
	_, err := s.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: sp.Namespace, Annotations: map[string]string{"wherry.test/test": t.Name()},
	}}, metav1.CreateOptions{})
	if err != nil {
		cancel()
		t.Fatalf("create namespace: %v; the end of the server's log:\n%s", err, s.LogTail(20))
	}
	sp.awaitAccount()
	watched := sp.watchPods()
	t.Cleanup(func() {
		sp.end()
		cancel()
		<-watched
	})
	return sp
}

// Context is the test's; it ends with it.
func (s *Space) Context() context.Context { return s.ctx }

// With gives the same space for a subtest.
func (s *Space) With(t testing.TB) *Space {
	c := *s
	c.T = t
	return &c
}

// Using gives the same space with another kubectl.
func (s *Space) Using(k Kubectl) *Space {
	c := *s
	c.kubectl = k
	return &c
}

// awaitAccount waits for the namespace's default service account, without which pods are refused.
func (s *Space) awaitAccount() {
	s.T.Helper()
	lw := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "serviceaccounts", s.Namespace,
		fields.OneTermEqualSelector("metadata.name", "default"))
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	_, err := watchtools.UntilWithSync(ctx, lw, &corev1.ServiceAccount{}, nil,
		func(e watch.Event) (bool, error) { return e.Type != watch.Deleted, nil })
	if err != nil {
		s.T.Fatalf("namespace %s gets no default service account: %v", s.Namespace, err)
	}
}

// watchPods notes all pods of the namespace until the space ends.
func (s *Space) watchPods() <-chan struct{} {
	note := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			s.seen.note(pod)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "pods", s.Namespace,
			fields.Everything()),
		ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }, DeleteFunc: note,
		},
	})
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(s.ctx) }()
	return done
}

// end deletes the namespace and checks that nothing of its pods is left on the node. After a failed test it first says
// what the pods were at.
func (s *Space) end() {
	s.T.Helper()
	if s.T.Failed() {
		s.T.Log(s.Describe())
	}
	select {
	case <-s.Done():
		s.T.Errorf("the server has ended (%v); the end of its log:\n%s", s.Server.err, s.LogTail(60))
		return
	default:
	}
	ctx, cancel := context.WithTimeout(s.ctx, Timeout)
	defer cancel()
	none := int64(0) // tests of deletion look at grace themselves; here is only cleaned up
	if err := s.Client.CoreV1().Pods(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &none},
		metav1.ListOptions{}); err != nil {
		s.T.Errorf("clean up: delete pods: %v", err)
	}
	if err := s.Client.CoreV1().Namespaces().Delete(ctx, s.Namespace, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		s.T.Errorf("clean up: %v", err)
	}
	if err := s.awaitGone(ctx, "namespaces", "", s.Namespace); err != nil {
		s.T.Errorf("clean up: namespace %s is not gone: %v\n%s", s.Namespace, err, s.Describe())
		return
	}
	for _, pod := range s.Seen() {
		s.AwaitNoTrace(pod)
	}
}

// Seen are the last states of all pods that the namespace ever had.
func (s *Space) Seen() []*corev1.Pod {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	var out []*corev1.Pod
	for _, p := range s.seen.pods {
		out = append(out, p)
	}
	return out
}

// Describe is what a person wants to see of the namespace when a test failed.
func (s *Space) Describe() string {
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "pods", "-o", "wide"},
		{"get", "events", "--sort-by=.metadata.creationTimestamp"},
	} {
		r := s.kubectlCommand(args...).run()
		fmt.Fprintf(&b, "$ kubectl %s\n%s%s", strings.Join(args, " "), r.Out, r.Err)
	}
	for _, p := range s.Seen() {
		for _, c := range p.Status.ContainerStatuses {
			fmt.Fprintf(&b, "%s/%s: %s\n", p.Name, c.Name, c.State.String())
		}
	}
	fmt.Fprintf(&b, "the end of the server's log:\n%s\n", s.LogTail(15))
	return b.String()
}

// awaitGone waits until an object is not there.
func (s *Server) awaitGone(ctx context.Context, resource, namespace, name string) error {
	lw := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), resource, namespace,
		fields.OneTermEqualSelector("metadata.name", name))
	types := map[string]watchable{"namespaces": &corev1.Namespace{}, "pods": &corev1.Pod{}}
	_, err := watchtools.UntilWithSync(ctx, lw, types[resource],
		func(store cache.Store) (bool, error) { return len(store.List()) == 0, nil },
		func(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil })
	return err
}

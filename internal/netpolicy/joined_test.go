// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"

	"github.com/wherryproject/wherry/internal/netpolicy/decide"
)

// signalling is a kernel that tells of each change made in it. Its fields are looked at when that was heard.
type signalling struct {
	kernel
	made chan struct{}
}

func (k *signalling) Remove() error {
	defer func() { k.made <- struct{}{} }()
	return k.kernel.Remove()
}

// joined is an enforcer of an API server that is another process: nobody tells of the first policy.
func joined(client *fake.Clientset, k Kernel) (*Enforcer, informers.SharedInformerFactory) {
	factory := informers.NewSharedInformerFactory(client, 0)
	return New(Config{Host: k, Node: "here", Client: client, Informers: factory,
		Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/24")},
		Names:    func() *decide.Names { return nil }, Log: slog.New(slog.DiscardHandler)}), factory
}

// TestStartedAgain: WL-19, WL-20, an agent whose API server does not answer leaves what was enforced before as it is, and
// enforces what there is when it answers. In true time: what is tried again, is so by a library's clock.
func TestStartedAgain(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"}, Spec: corev1.PodSpec{NodeName: "here"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.77.0.2"}}}}
	client := fake.NewClientset(pod, deny())
	up := make(chan struct{})
	client.PrependReactor("list", "*", func(core.Action) (bool, runtime.Object, error) {
		select {
		case <-up:
			return false, nil, nil
		default:
			return true, nil, errors.New("connection refused")
		}
	})
	k := &kernel{there: before()}
	e, factory := joined(client, k)
	life, end := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer end()
	first, cancel := context.WithTimeout(life, 50*time.Millisecond)
	defer cancel()
	if err := e.Start(first, life); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a start without an API server: %v", err)
	}
	if k.removed > 0 || len(k.there.Sets) == 0 {
		t.Errorf("what was enforced before was taken away")
	}
	close(up)
	if err := e.Start(life, life); err != nil {
		t.Fatal(err)
	}
	if to := k.leads("10.77.0.2"); to == "" || to == decide.Accept || e.Problem() != "" {
		t.Errorf("the pod leads to %q, with the problem %q; want a profile and none", to, e.Problem())
	}
}

// TestFirstPolicyOfAnother: WL-19, WL-20, an agent follows pods only from the first policy on, and enforces it.
func TestFirstPolicyOfAnother(t *testing.T) {
	client := fake.NewClientset()
	k := &signalling{made: make(chan struct{}, 8)}
	e, factory := joined(client, k)
	ctx, end := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer end()
	if err := e.Start(ctx, ctx); err != nil {
		t.Fatal(err)
	}
	<-k.made
	for _, a := range client.Actions() {
		if a.GetResource().Resource == "pods" {
			t.Errorf("pods were asked for without a policy")
		}
	}
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	asked := make(chan struct{}, 8)
	client.PrependReactor("list", "pods", func(core.Action) (bool, runtime.Object, error) {
		asked <- struct{}{}
		return false, nil, nil
	})
	if _, err := client.NetworkingV1().NetworkPolicies("a").Create(ctx, deny(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-asked
	end()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/wherryproject/wherry/internal/api/firsts"
	"github.com/wherryproject/wherry/internal/netpolicy/decide"
	"github.com/wherryproject/wherry/internal/netpolicy/tables"
)

// kernel has what is made in it, and fails as often as it should.
type kernel struct {
	there                               decide.There
	changed                             chan struct{} // somebody else has changed it
	reads, forgotten, removed           int
	failMakes, failForgets, failRemoves int
}

var errBusy = errors.New("device or resource busy")

func (k *kernel) Read() (tables.State, error) {
	k.reads++
	return tables.State{Table: true, There: k.there}, nil
}

func (k *kernel) Make(have tables.State, want decide.Tables, touched *decide.Touched) (tables.State, decide.Change, error) {
	change := decide.Diff(have.There, want, touched)
	if k.failMakes > 0 {
		k.failMakes--
		return have, change, errBusy
	}
	if !change.Empty() {
		k.there = want.There()
	}
	return tables.State{Table: true, There: k.there}, change, nil
}

func (k *kernel) Forget(func(tables.Flow) bool) error {
	if k.failForgets > 0 {
		k.failForgets--
		return errBusy
	}
	k.forgotten++
	return nil
}

func (k *kernel) Remove() error {
	if k.failRemoves > 0 {
		k.failRemoves--
		return errBusy
	}
	k.removed++
	return nil
}

func (k *kernel) Watch(context.Context) (<-chan struct{}, <-chan error, error) {
	k.changed = make(chan struct{}, 1)
	return k.changed, nil, nil
}

// leads says where the kernel sends what comes to an address.
func (k *kernel) leads(addr string) string {
	return k.there.Sets[decide.SetIn][decide.Elem{Addr: netip.MustParseAddr(addr)}]
}

// bench is an enforcer that has started and runs.
type bench struct {
	*Enforcer
	client *fake.Clientset
	firsts *firsts.Board
	atOnce string // the problem after Start
}

// enforcing runs a test, in a bubble, with an enforcer for one pod and what else there is.
func enforcing(t *testing.T, k *kernel, test func(*testing.T, bench), objects ...runtime.Object) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"}, Spec: corev1.PodSpec{NodeName: "here"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.77.0.2"}}}}
		client := fake.NewClientset(append(objects, pod)...)
		factory := informers.NewSharedInformerFactory(client, 0)
		board := &firsts.Board{}
		b := bench{client: client, firsts: board, Enforcer: New(Config{Host: k, Node: "here", Client: client, Informers: factory,
			Networks: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/24")}, Firsts: board,
			Names: func() *decide.Names { return nil }, Log: slog.New(slog.DiscardHandler)})}
		if err := b.Start(ctx, ctx); err != nil {
			t.Fatal(err)
		}
		b.atOnce = b.Problem()
		done := make(chan error)
		go func() { done <- b.Run(ctx) }()
		synctest.Wait()
		test(t, b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
}

func deny() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "deny"}}
}

// before is what a kernel has in which a server before enforced a policy of another namespace.
func before() decide.There {
	w := decide.New()
	_ = w.SetPolicy(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: "old"}})
	return w.Tables().There()
}

// TestFailedStart: WL-19, a policy of while the server was down is enforced, also if that fails at the start, and until
// then it is told that it is not.
func TestFailedStart(t *testing.T) {
	k := &kernel{there: before(), failMakes: 1}
	enforcing(t, k, func(t *testing.T, b bench) {
		if !strings.Contains(b.atOnce, errBusy.Error()) {
			t.Errorf("the problem is %q, want the failure", b.atOnce)
		}
		time.Sleep(firstRetry)
		synctest.Wait()
		if to := k.leads("10.77.0.2"); to == "" || to == decide.Accept || b.Problem() != "" {
			t.Errorf("the pod leads to %q, with the problem %q; want a profile and none", to, b.Problem())
		}
	}, deny())
}

// TestFailedRemoval: WL-19, rules of policies that were deleted while the server was down are taken away, also if that
// fails at the start, and until then it is told.
func TestFailedRemoval(t *testing.T) {
	k := &kernel{there: before(), failRemoves: 2}
	enforcing(t, k, func(t *testing.T, b bench) {
		if !strings.Contains(b.atOnce, errBusy.Error()) {
			t.Errorf("the problem is %q, want the failure", b.atOnce)
		}
		time.Sleep(3 * firstRetry)
		synctest.Wait()
		if k.removed != 1 || b.Problem() != "" {
			t.Errorf("removed %d times, with the problem %q; want once and none", k.removed, b.Problem())
		}
		time.Sleep(time.Minute)
		if k.removed != 1 {
			t.Errorf("removed %d times without policies, want once", k.removed)
		}
	})
}

// TestFirstPolicy: WL-19, nothing is looked at until the first policy is stored, and that one is enforced at once.
func TestFirstPolicy(t *testing.T) {
	k := &kernel{}
	enforcing(t, k, func(t *testing.T, b bench) {
		for _, a := range b.client.Actions() {
			if a.GetVerb() == "watch" {
				t.Errorf("without policies %s are followed", a.GetResource().Resource)
			}
		}
		p, err := b.client.NetworkingV1().NetworkPolicies("a").Create(t.Context(), deny(), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.firsts.Wrote(networkingv1.Resource("networkpolicies"), p)
		time.Sleep(time.Second) // client-go looks ten times a second whether all is known
		synctest.Wait()
		if to := k.leads("10.77.0.2"); to == "" || to == decide.Accept || b.Problem() != "" {
			t.Errorf("the pod leads to %q, with the problem %q; want a profile and none", to, b.Problem())
		}
	})
}

// TestMadeAgain: WL-19, RS-09, what somebody else takes out of the kernel is there again at once.
func TestMadeAgain(t *testing.T) {
	k := &kernel{there: before()}
	enforcing(t, k, func(t *testing.T, b bench) {
		delete(k.there.Sets, decide.SetIn)
		k.changed <- struct{}{}
		synctest.Wait()
		if to := k.leads("10.77.0.2"); to == "" || to == decide.Accept {
			t.Errorf("the pod leads to %q, want a profile", to)
		}
	}, deny())
}

// TestForgetting: WL-19, flows of UDP that are forbidden are forgotten at the start, even if a server before has made
// the rules, and tried again until it is done.
func TestForgetting(t *testing.T) {
	k := &kernel{there: before(), failForgets: 1}
	enforcing(t, k, func(t *testing.T, b bench) {
		if !strings.Contains(b.atOnce, errBusy.Error()) {
			t.Errorf("the problem is %q, want the failure", b.atOnce)
		}
		time.Sleep(firstRetry)
		synctest.Wait()
		if k.forgotten != 1 || b.Problem() != "" {
			t.Errorf("forgotten %d times, with the problem %q; want once and none", k.forgotten, b.Problem())
		}
		k.forgotten = 0
	}, deny())
	enforcing(t, k, func(t *testing.T, b bench) {
		if k.forgotten != 1 {
			t.Errorf("with rules that are there already forgotten %d times, want once", k.forgotten)
		}
		time.Sleep(time.Minute)
		if k.forgotten != 1 {
			t.Errorf("forgotten %d times without a change", k.forgotten)
		}
	}, deny())
}

// TestRefusedIsTold: WL-19, a policy that is not understood is told of as long as it is there, and nothing is tried
// again for it.
func TestRefusedIsTold(t *testing.T) {
	p := deny()
	p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "nonsense"}}}}}
	k := &kernel{there: before()}
	enforcing(t, k, func(t *testing.T, b bench) {
		for range 2 {
			if !strings.Contains(b.Problem(), "NetworkPolicy a/deny: spec.ingress[0].from[0].ipBlock.cidr") {
				t.Errorf("the problem is %q", b.Problem())
			}
			b.mark(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"}}) // something else
			time.Sleep(time.Minute)
		}
		if k.reads != 1 {
			t.Errorf("the kernel was read %d times, want once", k.reads)
		}
		if err := b.client.NetworkingV1().NetworkPolicies("a").Delete(t.Context(), "deny", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if b.Problem() != "" {
			t.Errorf("the problem of a policy that has gone is %q", b.Problem())
		}
	}, p)
}

// SPDX-License-Identifier: Apache-2.0

package noderoutes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

func node(name, cidr string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if cidr != "" {
		n.Spec.PodCIDR, n.Spec.PodCIDRs = cidr, []string{cidr}
	}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// WL-20: which nodes are reached; what is no network or address is as if it were not there.
func TestNodes(t *testing.T) {
	named := node("d", "10.9.4.0/24")
	named.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "192.0.2.9"}, {Type: corev1.NodeExternalIP, Address: "192.0.2.9"}}
	old := node("e", "", "192.0.2.6")
	old.Spec.PodCIDR = "10.9.5.7/24"
	for _, tc := range []struct {
		what string
		list []*corev1.Node
		want string
	}{
		{"none", nil, "[]"},
		{"not the own one, and by name", []*corev1.Node{node("c", "10.9.2.0/24", "192.0.2.3"), node("own", "10.9.1.0/24", "192.0.2.2"),
			node("b", "10.9.3.0/24", "192.0.2.4", "2001:db8::1")}, "[{b [10.9.3.0/24] [192.0.2.4 2001:db8::1]} {c [10.9.2.0/24] [192.0.2.3]}]"},
		{"one that has no network yet, one without an address, one with names only", []*corev1.Node{node("b", "", "192.0.2.3"),
			node("c", "10.9.2.0/24"), named}, "[]"},
		{"nonsense", []*corev1.Node{node("b", "ten", "192.0.2.3"), node("c", "10.9.2.0/24", "here"), node("f", "10.9.2.0/24", "fe80::1%eth0")}, "[]"},
		{"the older field alone, with host bits", []*corev1.Node{old}, "[{e [10.9.5.0/24] [192.0.2.6]}]"},
	} {
		if got := fmt.Sprint(Nodes("own", tc.list)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
	}
}

// WL-20: routes follow nodes; what fails, or is out of reach, is tried again in time however often other nodes change.
func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset(node("own", "10.9.1.0/24", "192.0.2.2"), node("b", "10.9.2.0/24", "192.0.2.3"))
		factory := informers.NewSharedInformerFactory(client, 0)
		var calls []string
		var unreached []network.Unreached
		failing := errors.New("device or resource busy")
		f := New(Config{Node: "own", Nodes: factory.Core().V1().Nodes().Informer(), Log: slog.New(slog.DiscardHandler),
			Reach: func(list []network.Node) ([]network.Unreached, error) {
				calls = append(calls, fmt.Sprint(list))
				return unreached, failing
			}})
		factory.Start(ctx.Done())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		synctest.Wait()
		wantCalls := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if fmt.Sprint(calls) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", what, calls, want)
			}
			calls = nil
		}
		b, both := "[{b [10.9.2.0/24] [192.0.2.3]}]", "[{b [10.9.2.0/24] [192.0.2.3]} {c [10.9.3.0/24] [192.0.2.4]}]"
		wantCalls("at first", b)
		failing = nil
		unreached = []network.Unreached{{Node: "b", Network: netip.MustParsePrefix("10.9.2.0/24"), Why: "out of reach"}}
		time.Sleep(firstRetry)
		wantCalls("after the failure", b)
		time.Sleep(2 * firstRetry)
		wantCalls("out of reach", b)

		nodes := client.CoreV1().Nodes()
		time.Sleep(4*firstRetry - time.Millisecond)
		if _, err := nodes.Create(ctx, node("c", "10.9.3.0/24", "192.0.2.4"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		wantCalls("with another", both)
		unreached = nil
		time.Sleep(time.Millisecond)
		wantCalls("in time, though another has come", both)
		labelled := node("c", "10.9.3.0/24", "192.0.2.4")
		labelled.Labels = map[string]string{"a": "b"}
		if _, err := nodes.Update(ctx, labelled, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		wantCalls("a label is none of its matters")
		time.Sleep(10 * lastRetry)
		wantCalls("all is well")
		if err := nodes.Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wantCalls("without it", b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		factory.Shutdown()
	})
}

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/nodenetwork"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// WL-25: an agent keeps what it has learnt of the networks of services while its server does not answer, and asks anew
// when a service has an address outside of them.
func TestLearntNetworks(t *testing.T) {
	var answer atomic.Value
	answer.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := answer.Load().(string); text != "" && r.URL.Path == nodenetwork.Path {
			fmt.Fprint(w, text)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := &learntNetworks{client: client, stale: make(chan struct{}, 1), known: parsePrefixes([]string{"10.96.0.0/12"})}
	want := func(want string) {
		t.Helper()
		if got, _ := l.ask(t.Context()); fmt.Sprint(got) != want || fmt.Sprint(l.now()) != want {
			t.Errorf("known: %v, %v; want %s", got, l.now(), want)
		}
	}
	want("[10.96.0.0/12]")
	l.seen(netip.MustParseAddr("10.100.0.1"))
	if len(l.stale) != 0 {
		t.Error("a service within what is known has it asked")
	}
	for range 2 {
		l.seen(netip.MustParseAddr("203.0.113.7"))
	}
	_, stale := l.ask(t.Context())
	select {
	case <-stale:
	default:
		t.Error("a service outside of what is known does not have it asked")
	}
	answer.Store(`{"serviceCIDRs": ["10.96.0.0/12", "203.0.113.0/24"]}`)
	want("[10.96.0.0/12 203.0.113.0/24]")
	l.seen(netip.MustParseAddr("203.0.113.7"))
	if len(l.stale) != 0 {
		t.Error("it is asked although it is known")
	}
	answer.Store("")
	want("[10.96.0.0/12 203.0.113.0/24]")
	(*learntNetworks)(nil).seen(netip.MustParseAddr("203.0.113.7")) // of a server, which is told
}

// WL-25: the node is told of a further network of services at once.
func TestCarrierFollowsNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: "kubernetes"},
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 443}}}})
		networks, moved := parsePrefixes([]string{"10.96.0.0/12"}), make(chan struct{}, 1)
		var installed []network.Services
		c := &carrier{client: client, url: "https://127.0.0.1:6443",
			networks: func(context.Context) ([]netip.Prefix, <-chan struct{}) { return slices.Clone(networks), moved },
			install: func(s network.Services) ([]netip.Prefix, error) {
				installed = append(installed, s)
				return nil, nil
			}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		if err := c.carry(ctx); err != nil {
			t.Fatal(err)
		}
		go func() { done <- c.keep(ctx, nil, slog.New(slog.DiscardHandler)) }()
		synctest.Wait()
		networks = append(networks, netip.MustParsePrefix("203.0.113.0/24"))
		moved <- struct{}{}
		synctest.Wait() // no time passes
		if len(installed) != 2 || len(installed[0].Refused) != 1 || len(installed[1].Refused) != 2 {
			t.Errorf("installed: %+v", installed)
		}
		moved <- struct{}{} // nothing has changed
		synctest.Wait()
		if len(installed) != 2 {
			t.Errorf("installed %d times", len(installed))
		}
		if err := c.drop(); err != nil || len(installed[2].Refused) != 2 {
			t.Errorf("when the server stops: %+v, %v", installed, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/runtime/network"
)

// TestServerAddress: where service kubernetes leads to, by the URL that the node knows the API server by.
func TestServerAddress(t *testing.T) {
	for _, tc := range []struct{ url, inUse, want string }{
		{"https://127.0.0.1:6443", "", "127.0.0.1:6443"},
		{"https://10.1.2.3", "", "10.1.2.3:443"},
		{"https://[fd00::5]:6443", "", "[fd00::5]:6443"},
		{"https://localhost:6443", "", "127.0.0.1:6443"},
		{"https://localhost:6443", "127.0.0.1:6443", "127.0.0.1:6443"},
		{"https://localhost:7443", "127.0.0.1:6443", "127.0.0.1:7443"},
		{"localhost", "", ""},
		{"https://localhost:nowhere", "", ""},
	} {
		var inUse netip.AddrPort
		if tc.inUse != "" {
			inUse = netip.MustParseAddrPort(tc.inUse)
		}
		got, err := serverAddress(t.Context(), tc.url, true, inUse)
		if (err != nil) != (tc.want == "") || err == nil && got.String() != tc.want {
			t.Errorf("%s, in use %s: %s, %v; want %q", tc.url, tc.inUse, got, err, tc.want)
		}
	}
}

// RS-09: a node that cannot carry service kubernetes when it starts tries again by itself, ever more seldom, and says
// so once.
func TestCarryingIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var tries []time.Duration
		began := time.Now()
		client := fake.NewClientset(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 443}}},
		})
		c := &carrier{client: client, url: "https://127.0.0.1:6443",
			install: func(s network.Services) ([]netip.Prefix, error) {
				tries = append(tries, time.Since(began))
				if len(tries) < 5 {
					return nil, errors.New("the kernel is busy")
				}
				return nil, nil
			}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		err := c.carry(ctx)
		if err == nil {
			t.Fatal("the first try succeeded")
		}
		go func() { done <- c.keep(ctx, err, slog.New(slog.NewTextHandler(&log, nil))) }()
		time.Sleep(10 * time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if want := (network.Services{API: netip.MustParseAddrPort("10.96.0.1:443"),
			Server: netip.MustParseAddrPort("127.0.0.1:6443")}); !reflect.DeepEqual(c.now, want) {
			t.Errorf("carried: %+v, want %+v", c.now, want)
		}
		if len(tries) != 5 || tries[4] < 10*time.Second || tries[4] > time.Minute {
			t.Errorf("tried at %v, want five times, the last one after 1+2+4+8 s", tries)
		}
		if n := strings.Count(log.String(), "cannot reach"); n != 1 {
			t.Errorf("said %d times, want once:\n%s", n, log.String())
		}
	})
}

// RS-09: a server whose pods' network is an external runtime's says that nothing carries the services' addresses, and
// what to do; an agent of another cluster leaves that to the cluster.
func TestNotCarriedIsSaid(t *testing.T) {
	for own, want := range map[bool]string{true: "level=WARN", false: "level=INFO"} {
		var said strings.Builder
		s := &Server{log: slog.New(slog.NewTextHandler(&said, nil)),
			opts: Options{ServiceCIDR: "10.96.0.0/12", RuntimeEndpoint: "unix:///run/x.sock"}}
		s.parts.cluster.url = "https://127.0.0.1:6443"
		if own {
			s.parts.api = &api.Server{}
		}
		if err := s.startServices(t.Context()); err != nil {
			t.Fatal(err)
		}
		text := said.String()
		if !strings.Contains(text, want) || own != (strings.Contains(text, "KUBERNETES_SERVICE_HOST") &&
			strings.Contains(text, "service-cidr=10.96.0.0/12")) {
			t.Errorf("own API server %v: %s", own, text)
		}
	}
}

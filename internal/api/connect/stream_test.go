// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/wherryproject/wherry/internal/api/connect/kubelettest"
)

func TestPortForward(t *testing.T) {
	for _, way := range kubelettest.Ways() {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			ports, done := forwardPorts(t, dialer(t, c, way, "plain"), "0:8080", "0:9090")
			for _, p := range ports {
				if got, want := ask(t, int(p.Local), "hello"), fmt.Sprintf("%d got hello", p.Remote); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			done()
		})
	}
	t.Run("not scheduled", func(t *testing.T) {
		c := newCluster(t)
		_, _, err := dialer(t, c, "spdy", "homeless").Dial(portforward.PortForwardProtocolV1Name)
		if err == nil || !strings.Contains(err.Error(), "pod homeless does not have a host assigned") {
			t.Error(err)
		}
	})
}

func dialer(t *testing.T, c *cluster, way, pod string) httpstream.Dialer {
	t.Helper()
	cfg := &rest.Config{Host: c.URL}
	u, _ := url.Parse(c.URL + "/api/v1/namespaces/default/pods/" + pod + "/portforward")
	if way == "websocket" {
		d, err := portforward.NewSPDYOverWebsocketDialer(u, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	transport, upgrader, err := spdy.RoundTripperFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
}

func forwardPorts(t *testing.T, d httpstream.Dialer, ports ...string) ([]portforward.ForwardedPort, func()) {
	t.Helper()
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f, err := portforward.New(d, ports, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	forwarded, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return forwarded, func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func ask(t *testing.T, port int, question string) string {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("localhost:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(conn, question)
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

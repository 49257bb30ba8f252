// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/connlimit/shed"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// TestHealthPort (RS-01): a crowd that opens connections to the health check ports of services and says nothing is kept
// small, over all services together, and a load balancer that comes after it is answered.
// ATTACK B23.
func TestHealthPort(t *testing.T) {
	const most = 16
	d := connlimit.New(connlimit.Config{Limits: shed.Limits{Strangers: most, PerAddress: most / 2, Known: most}})
	h := newHealth(d, slog.New(slog.DiscardHandler))
	t.Cleanup(h.close)
	h.time = time.Minute // so that a busy machine has enough of it to end connections before
	web, empty := freePort(t), freePort(t)
	h.serve([]*decide.Part{{Name: "shop/web", HealthPort: web, Local: 2}, {Name: "shop/empty", HealthPort: empty}})

	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var crowd []net.Conn
	for i := range 10 * most {
		c, err := elsewhere.DialContext(t.Context(), "tcp", address([]int32{web, empty}[i%2]))
		if errors.Is(err, syscall.ECONNRESET) { // it was turned away before it knew that it was let in
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		crowd = append(crowd, c)
	}
	for _, want := range []struct {
		port   int32
		status int
		has    string
		weight string
	}{{web, 200, `"localEndpoints":2`, "2"}, {empty, 503, `"name":"empty"`, "0"}} {
		status, body, header := question(t, want.port)
		if status != want.status || !strings.Contains(body, want.has) ||
			header.Get("X-Load-Balancing-Endpoint-Weight") != want.weight {
			t.Errorf("port %d: %d %s %v", want.port, status, body, header)
		}
	}
	// All but the last are gone, and not because their time was over.
	deadline := time.Now().Add(h.time / 2)
	for _, c := range crowd[:max(0, len(crowd)-most)] {
		if err := c.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%d bytes, %v: want the end of the connection", n, err)
		}
	}
}

// TestHealthPortCloses: the port goes with its service, and the connections to it.
func TestHealthPortCloses(t *testing.T) {
	h := newHealth(nil, slog.New(slog.DiscardHandler))
	port := freePort(t)
	h.serve([]*decide.Part{{Name: "shop/web", HealthPort: port, Local: 1}})
	if status, body, _ := question(t, port); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	late := true
	h.ports[port].well = func() bool { return !late }
	if status, body, _ := question(t, port); status != 503 || !strings.Contains(body, `"serviceProxyHealthy":false`) {
		t.Errorf("while the rules are late: %d %s", status, body)
	}
	h.serve(nil)
	if c, err := net.Dial("tcp", address(port)); err == nil {
		c.Close()
		t.Error("the port of a service that is gone is open")
	}
}

func address(port int32) string { return "127.0.0.1:" + strconv.Itoa(int(port)) }

func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

func question(t *testing.T, port int32) (status int, body string, header http.Header) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address(port) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

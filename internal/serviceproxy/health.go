// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wherryproject/wherry/internal/connlimit"
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
)

// A question to a health check port is a line, and so is its answer: who takes longer is not a load balancer.
const healthTime = 5 * time.Second

// health answers load balancers of others at the health check ports of services whose external traffic stays on the
// node: whether this node has an endpoint that is ready.
type health struct {
	log   *slog.Logger
	well  func() bool        // whether the proxy keeps up; nil: it does
	conns *connlimit.Limiter // of all ports together; nil: there is none
	time  time.Duration      // [healthTime], but for tests
	ports map[int32]*healthPort
}

type healthPort struct {
	service string
	well    func() bool
	local   atomic.Int64
	end     func() // nil: the port cannot be had
}

func newHealth(d *connlimit.Limiter, log *slog.Logger) *health {
	return &health{log: log, conns: d, time: healthTime, ports: map[int32]*healthPort{}}
}

// serve opens and closes ports as services want them.
func (h *health) serve(parts []*decide.Part) {
	wanted := map[int32]*decide.Part{}
	for _, p := range parts {
		if p.HealthPort != 0 {
			wanted[p.HealthPort] = p
		}
	}
	for port, have := range h.ports {
		if p := wanted[port]; p == nil || p.Name != have.service {
			have.close()
			delete(h.ports, port)
		}
	}
	for port, p := range wanted {
		if h.ports[port] == nil {
			h.ports[port] = h.open(port, p.Name)
		}
		h.ports[port].local.Store(int64(p.Local))
	}
}

func (h *health) open(port int32, service string) *healthPort {
	out := &healthPort{service: service, well: h.well}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		h.log.Warn("load balancers cannot ask whether a service has endpoints on this node", "service", service, "err",
			err)
		return out
	}
	out.end = serve(l, h.conns, out, h.time)
	return out
}

func (p *healthPort) close() {
	if p.end != nil {
		p.end()
	}
}

// ServeHTTP implements http.Handler: 200 if there is an endpoint, else 503. The header lets balancers give nodes with
// more endpoints more to do.
func (p *healthPort) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	local := p.local.Load()
	namespace, name, _ := strings.Cut(p.service, "/")
	well := p.well == nil || p.well()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(local, 10))
	if local == 0 || !well {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"service":             map[string]string{"namespace": namespace, "name": name},
		"localEndpoints":      local,
		"serviceProxyHealthy": well,
	})
}

func (h *health) close() {
	for _, p := range h.ports {
		p.close()
	}
}

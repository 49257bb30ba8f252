// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/wherryproject/wherry/internal/connlimit"
)

const (
	pathHealth = "/healthz" // also whether load balancers should send anything here
	pathLive   = "/livez"   // whether the proxy works
)

// mode is what we answer where a kube-proxy says by what it carries services.
const mode = "nftables"

// serve serves at a listener until the function that it returns is called; most is how long a request and its answer
// may take.
func serve(l net.Listener, conns *connlimit.Limiter, handler http.Handler, most time.Duration) (end func()) {
	if conns != nil {
		l, handler = conns.Listener(l), conns.Handler(handler)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: most, ReadTimeout: most,
		WriteTimeout: most, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() { _ = server.Serve(l) }() // ends with what is returned
	return func() { _ = server.Close() }
}

// serveOwn serves what a kube-proxy serves of itself, where the configuration wants it.
func (p *Proxy) serveOwn() (end func()) {
	var ends []func()
	if l := p.config.Healthz; l != nil {
		ends = append(ends, serve(l, p.config.Conns, p.healthHandler(), healthTime))
	}
	if l := p.config.Metrics; l != nil {
		ends = append(ends, serve(l, p.config.Conns, p.metricsHandler(), healthTime))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// healthHandler answers load balancers that ask about the node as a whole.
func (p *Proxy) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathHealth, func(w http.ResponseWriter, _ *http.Request) {
		r, eligible := p.report()
		r.NodeEligible = &eligible
		p.answer(w, pathHealth, r, r.Healthy && eligible)
	})
	mux.HandleFunc("GET "+pathLive, func(w http.ResponseWriter, _ *http.Request) {
		r, _ := p.report()
		p.answer(w, pathLive, r, r.Healthy)
	})
	return mux
}

// report is what there is to say of the proxy, and whether the node is one for load balancers.
func (p *Proxy) report() (r report, eligible bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress.report(time.Now()), p.node.eligible
}

func (p *Proxy) answer(w http.ResponseWriter, path string, r report, well bool) {
	code := http.StatusOK
	if !well {
		code = http.StatusServiceUnavailable
	}
	p.measures.answered(path, code)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(r)
}

// metricsHandler serves whoever watches over the proxy.
func (p *Proxy) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.measures.handler())
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = io.WriteString(w, text)
		}
	}
	mux.HandleFunc("GET /proxyMode", say(mode))
	mux.HandleFunc("GET /healthz", say("ok"))
	return mux
}

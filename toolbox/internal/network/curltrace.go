// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"
)

// exchangeTrace notes what happens between a question and its answer, and when.
type exchangeTrace struct {
	mu      sync.Mutex // the client calls from goroutines of its own
	out     io.Writer
	verbose bool
	start   time.Time
	at      map[string]time.Duration // since start, by curl's name

	local, remote net.Addr
	connects      int
	request       *http.Request
	sent          bool // a line of the request has been shown
}

func newTrace(out io.Writer, verbose bool) *exchangeTrace {
	return &exchangeTrace{out: out, verbose: verbose, start: time.Now(), at: map[string]time.Duration{}}
}

// note keeps a time and says a line. Those that curl marks as its own begin with a star.
func (t *exchangeTrace) note(name, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name != "" {
		t.at[name] = time.Since(t.start)
	}
	if t.verbose && format != "" {
		for i, a := range args {
			args[i] = inLine(fmt.Sprint(a))
		}
		fmt.Fprintf(t.out, format+"\n", args...)
	}
}

// context makes the client tell the trace; without one nothing is noted.
func (t *exchangeTrace) context(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.note("redirect", "") },
		DNSDone: func(i httptrace.DNSDoneInfo) {
			if i.Err == nil {
				t.note("namelookup", "* Resolved: %s", strings.Join(addresses(i.Addrs), ", "))
			}
		},
		ConnectStart: func(_, addr string) { t.note("", "*   Trying %s...", addr) },
		ConnectDone: func(_, addr string, err error) {
			if err != nil {
				t.note("", "* connect to %s: %v", addr, err)
				return
			}
			t.note("connect", "* Connected to %s", addr)
		},
		TLSHandshakeStart: func() { t.note("", "* TLS handshake begins") },
		TLSHandshakeDone:  t.handshake,
		GotConn:           t.connected,
		WroteHeaderField:  t.field,
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil && t.sent {
				t.note("", ">")
			}
		},
		GotFirstResponseByte: func() { t.note("starttransfer", "") },
	})
}

func addresses(list []net.IPAddr) (out []string) {
	for _, a := range list {
		out = append(out, a.String())
	}
	return out
}

func (t *exchangeTrace) connected(i httptrace.GotConnInfo) {
	t.mu.Lock()
	if t.local, t.remote = i.Conn.LocalAddr(), i.Conn.RemoteAddr(); !i.Reused {
		t.connects++
	}
	t.sent = false
	t.mu.Unlock()
	if i.Reused {
		t.note("pretransfer", "* Using the connection to %s again", i.Conn.RemoteAddr())
		return
	}
	t.note("pretransfer", "")
}

// handshake tells what was agreed on, and who the server says it is.
func (t *exchangeTrace) handshake(s tls.ConnectionState, err error) {
	if err != nil {
		t.note("", "* TLS handshake failed: %v", err)
		return
	}
	t.note("appconnect", "* SSL connection using %s / %s", tls.VersionName(s.Version),
		tls.CipherSuiteName(s.CipherSuite))
	if s.NegotiatedProtocol != "" {
		t.note("", "* ALPN: server accepted %s", s.NegotiatedProtocol)
	}
	if len(s.PeerCertificates) == 0 {
		return
	}
	own := s.PeerCertificates[0]
	t.note("",
		"* Server certificate:\n*  subject: %s\n*  start date: %s\n*  expire date: %s (%s)\n*  subjectAltName: %s\n*  issuer: %s", own.Subject, own.NotBefore.UTC().Format(certTime), own.NotAfter.UTC().Format(certTime), lasts(own, time.Now()), strings.Join(alternatives(own), ", "), own.Issuer)
	if len(s.VerifiedChains) > 0 {
		t.note("", "*  SSL certificate verify ok.")
	} else {
		t.note("", "*  SSL certificate was not checked (-k).")
	}
}

// field shows a header as it is sent, the first one below the request's line. HTTP/2 has that line in headers of its
// own.
func (t *exchangeTrace) field(name string, values []string) {
	t.mu.Lock()
	first, req := !t.sent, t.request
	t.sent = true
	t.mu.Unlock()
	if first && req != nil && !strings.HasPrefix(name, ":") {
		t.note("", "> %s %s HTTP/1.1", req.Method, req.URL.RequestURI())
	}
	t.note("", "> %s: %s", name, strings.Join(values, ", "))
}

// traced tells a trace of every question and answer, those of redirects too.
type traced struct {
	http.RoundTripper
	trace *exchangeTrace
}

func (r traced) RoundTrip(req *http.Request) (*http.Response, error) {
	r.trace.mu.Lock()
	r.trace.request = req
	r.trace.mu.Unlock()
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil {
		r.trace.answer(resp)
	}
	return resp, err
}

// answer shows the head of the answer.
func (t *exchangeTrace) answer(resp *http.Response) {
	t.note("", "< %s %s", resp.Proto, resp.Status)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, v := range resp.Header[name] {
			t.note("", "< %s: %s", name, v)
		}
	}
	t.note("", "<")
}

// written fills in the format of --write-out.
func (t *exchangeTrace) written(format string, resp *http.Response, url string, size int64) string {
	if format == "" {
		return ""
	}
	t.note("total", "")
	vars := t.variables(resp, url, size)
	all, err := json.Marshal(vars)
	if err == nil {
		vars["json"] = string(all)
	}
	var pairs []string
	for name, v := range vars {
		pairs = append(pairs, "%{"+name+"}", fmt.Sprint(v))
	}
	return strings.NewReplacer(append(pairs, "%%", "%", `\n`, "\n", `\t`, "\t", `\r`, "\r")...).Replace(format)
}

// variables are what a format may name.
func (t *exchangeTrace) variables(resp *http.Response, url string, size int64) map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := map[string]any{"url": url, "url_effective": url, "size_download": size, "num_connects": t.connects,
		"http_code": "000", "response_code": "000", "content_type": "", "http_version": "0", "scheme": "", "method": "",
		"redirect_url": "", "num_redirects": 0}
	redirects := 0
	if resp != nil {
		code := fmt.Sprintf("%03d", resp.StatusCode)
		v["http_code"], v["response_code"], v["content_type"] = code, code, resp.Header.Get("Content-Type")
		v["http_version"] = strings.TrimSuffix(fmt.Sprintf("%d.%d", resp.ProtoMajor, resp.ProtoMinor), ".0")
		v["url_effective"], v["scheme"], v["method"] = resp.Request.URL, resp.Request.URL.Scheme, resp.Request.Method
		for r := resp.Request.Response; r != nil; r = r.Request.Response {
			redirects++
		}
		if u, err := resp.Location(); err == nil {
			v["redirect_url"] = u
		}
	}
	v["num_redirects"] = redirects
	if v["url_effective"] = fmt.Sprint(v["url_effective"]); redirects == 0 {
		delete(t.at, "redirect")
	}
	v["redirect_url"] = fmt.Sprint(v["redirect_url"])
	for _, name := range []string{"namelookup", "connect", "appconnect", "pretransfer", "starttransfer", "redirect",
		"total"} {
		v["time_"+name] = fmt.Sprintf("%.6f", t.at[name].Seconds())
	}
	v["speed_download"] = 0
	if total := t.at["total"].Seconds(); total > 0 {
		v["speed_download"] = int64(float64(size) / total)
	}
	for side, addr := range map[string]net.Addr{"local": t.local, "remote": t.remote} {
		v[side+"_ip"], v[side+"_port"] = "", ""
		if tcp, ok := addr.(*net.TCPAddr); ok {
			v[side+"_ip"], v[side+"_port"] = tcp.IP.String(), fmt.Sprint(tcp.Port)
		}
	}
	return v
}

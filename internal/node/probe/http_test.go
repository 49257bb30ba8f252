// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func httpProbe(port intstr.IntOrString, path string, change ...func(*corev1.HTTPGetAction)) *corev1.Probe {
	a := &corev1.HTTPGetAction{Port: port, Path: path}
	for _, f := range change {
		f(a)
	}
	return &corev1.Probe{TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{HTTPGet: a}}
}

// app answers by path.
func app() http.Handler {
	mux := http.NewServeMux()
	for path, code := range map[string]int{"/200": 200, "/204": 204, "/399": 399, "/400": 400, "/404": 404, "/500": 500} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			if code != 204 {
				_, _ = io.WriteString(w, "secret")
			}
		})
	}
	redirect := func(path, to string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			_, _ = io.WriteString(w, "over there")
		})
	}
	redirect("/to-200", "/200")
	redirect("/to-500", "500")
	redirect("/away", "http://wherry.invalid/")
	redirect("/loop", "/loop")
	redirect("/ftp", "ftp://127.0.0.1/x")
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+"|"+r.URL.RawQuery+"|"+strings.Join(r.Header["X-Two"], ",")+"|")
		delete(r.Header, "X-Two")
		for _, k := range []string{"User-Agent", "Accept", "Accept-Encoding", "Connection"} {
			_, _ = io.WriteString(w, strings.Join(r.Header[k], ",")+"|")
		}
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		for range 1 << 10 {
			if _, err := io.WriteString(w, strings.Repeat("0123456789abcdef", 64)); err != nil {
				return
			}
		}
	})
	return mux
}

func headers(kv ...string) func(*corev1.HTTPGetAction) {
	return func(a *corev1.HTTPGetAction) {
		for i := 0; i < len(kv); i += 2 {
			a.HTTPHeaders = append(a.HTTPHeaders, corev1.HTTPHeader{Name: kv[i], Value: kv[i+1]})
		}
	}
}

// PL-04, SC-07: an HTTP probe with the protocol HTTP2 speaks HTTP/2 without TLS, to servers that speak nothing else.
func TestHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	port := portOf(t, server.Listener.Addr().String())
	for protocol, want := range map[corev1.HTTPProtocol]Verdict{corev1.HTTPProtocolHTTP2: Success, corev1.HTTPProtocolHTTP1: Failure} {
		spec := httpProbe(port, "/", func(a *corev1.HTTPGetAction) { a.Protocol = &protocol })
		r, err := New(nil).Try(t.Context(), target(), spec)
		if err != nil || r.Verdict != want || want == Success && r.Message != "HTTP/2.0" {
			t.Errorf("%s: %+v, %v", protocol, r, err)
		}
	}
}

// PL-04, SC-07: HTTP and HTTPS probes against real servers.
func TestHTTP(t *testing.T) {
	// A proxy from the environment must not be asked.
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	failure := func(m string) Result { return Result{Verdict: Failure, Message: m} }
	success := func(m string) Result { return Result{Verdict: Success, Message: m} }
	for _, scheme := range []corev1.URIScheme{"", corev1.URISchemeHTTP, corev1.URISchemeHTTPS} {
		server := httptest.NewServer(app())
		if scheme == corev1.URISchemeHTTPS {
			server.Close()
			server = httptest.NewTLSServer(app())
		}
		defer server.Close()
		address := server.Listener.Addr().String()
		port := portOf(t, address)
		for _, tc := range []struct {
			name, path string
			change     func(*corev1.HTTPGetAction)
			want       Result
		}{
			{"200", "/200", nil, success("secret")},
			{"204", "/204", nil, success("")},
			{"399", "/399", nil, Result{Success, "Probe terminated redirects, Response body: secret", true}},
			{"400 without the body", "/400", nil, failure("HTTP probe failed with statuscode: 400")},
			{"404", "/404", nil, failure("HTTP probe failed with statuscode: 404")},
			{"500", "/500", nil, failure("HTTP probe failed with statuscode: 500")},
			{"path without a slash", "200", nil, success("secret")},
			{"redirect followed", "/to-200", nil, success("secret")},
			{"redirect followed to a failure", "/to-500", nil, failure("HTTP probe failed with statuscode: 500")},
			{"redirect away", "/away", nil, Result{Success, "Probe terminated redirects, Response body: over there", true}},
			{"headers", "/headers?a=b", nil, success(address + "|a=b||kube-probe/1.37|*/*||close|")},
			{"own headers", "/headers", headers("host", "shop.example", "X-Two", "1", "x-two", "2", "user-agent", "me", "Accept", ""), success("shop.example||1,2|me|||close|")},
			{"long body is cut", "/big", nil, success(strings.Repeat("0123456789abcdef", 640))},
			{"host field", "/200", func(a *corev1.HTTPGetAction) { a.Host = "localhost" }, success("secret")},
		} {
			t.Run("PL-04 "+string(scheme)+" "+tc.name, func(t *testing.T) {
				spec := httpProbe(port, tc.path, func(a *corev1.HTTPGetAction) {
					a.Scheme = scheme
					if tc.change != nil {
						tc.change(a)
					}
				})
				got, err := New(nil).Try(t.Context(), target(), spec)
				if err != nil || got != tc.want {
					t.Errorf("Try: %+v, %v; want %+v", got, err, tc.want)
				}
			})
		}
	}
}

// PL-04: what fails on the way, in Go's and so the kubelet's words.
func TestHTTPFailures(t *testing.T) {
	server := httptest.NewServer(app())
	defer server.Close()
	port := portOf(t, server.Listener.Addr().String())
	closed := intstr.FromInt(closedPort(t))
	for name, tc := range map[string]struct {
		spec *corev1.Probe
		want string
	}{
		"refused":          {httpProbe(closed, "/"), "connect: connection refused"},
		"loop":             {httpProbe(port, "/loop"), "stopped after 10 redirects"},
		"unknown protocol": {httpProbe(port, "/ftp"), "unsupported protocol scheme"},
		"TLS to no TLS":    {httpProbe(port, "/", func(a *corev1.HTTPGetAction) { a.Scheme = "HTTPS" }), "server gave HTTP response to HTTPS client"},
	} {
		t.Run("PL-04 "+name, func(t *testing.T) {
			r, err := New(nil).Try(t.Context(), target(), tc.spec)
			if err != nil || r.Verdict != Failure || !strings.HasPrefix(r.Message, `Get "`) || !strings.Contains(r.Message, tc.want) {
				t.Errorf("Try: %+v, %v; want %q", r, err, tc.want)
			}
		})
	}
}

// PL-04: IPv6 pods.
func TestHTTPIPv6(t *testing.T) {
	l, port := listen(t, "[::1]:0")
	server := &http.Server{Handler: app()}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	to := target()
	to.PodIP = "::1"
	if r, err := New(nil).Try(t.Context(), to, httpProbe(intstr.FromInt(port), "/to-200")); err != nil || r.Verdict != Success {
		t.Errorf("HTTP: %+v, %v", r, err)
	}
	if r, err := New(nil).Try(t.Context(), to, tcpProbe("", intstr.FromInt(port))); err != nil || r.Verdict != Success {
		t.Errorf("TCP: %+v, %v", r, err)
	}
}

// silent takes what comes and never answers but with first.
func silent(first string) dialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer func() { _ = there.Close() }()
			if first != "" { // a server that spoke before it was asked would be another fault
				_, _ = bufio.NewReader(there).ReadString('\n')
				go func() { _, _ = io.WriteString(there, first) }()
			}
			_, _ = io.Copy(io.Discard, there) // until the other end is closed
		}()
		return here, nil
	}
}

// unreachable is a network that swallows everything, as a real dialer shows it.
func unreachable(ctx context.Context, network, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
}

// PL-04: timeoutSeconds holds whatever the network does, and nothing stays behind (the bubble would not end).
func TestTimeouts(t *testing.T) {
	https := func(a *corev1.HTTPGetAction) { a.Scheme = corev1.URISchemeHTTPS }
	port := intstr.FromInt(80)
	const timedOut = "context deadline exceeded" // mostly with " (Client.Timeout exceeded while awaiting headers)"
	for name, tc := range map[string]struct {
		dial dialFunc
		spec *corev1.Probe
		want string
	}{
		"HTTP to nowhere":           {unreachable, httpProbe(port, "/"), timedOut},
		"HTTP without an answer":    {silent(""), httpProbe(port, "/"), timedOut},
		"HTTP with half a head":     {silent("HTTP/1.1 200 OK\r\nA: b"), httpProbe(port, "/"), timedOut},
		"HTTP with half a body":     {silent("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), httpProbe(port, "/"), timedOut},
		"HTTPS without a handshake": {silent(""), httpProbe(port, "/", https), timedOut},
		"HTTPS to nowhere":          {unreachable, httpProbe(port, "/", https), timedOut},
		"TCP to nowhere":            {unreachable, tcpProbe("", port), "i/o timeout"},
		"gRPC to nowhere":           {unreachable, grpcProbe(80, nil), `timeout: failed to connect service "127.0.0.1:80" within 5s: dial tcp`},
		"gRPC without a handshake":  {silent(""), grpcProbe(80, nil), "timeout: health rpc did not complete within 5s"},
	} {
		t.Run("PL-04 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Prober{dial: tc.dial}
				tc.spec.TimeoutSeconds = 5
				began := time.Now()
				r, err := p.Try(t.Context(), target(), tc.spec)
				if err != nil || r.Verdict != Failure || !strings.Contains(r.Message, tc.want) {
					t.Errorf("Try: %+v, %v; want %q", r, err, tc.want)
				}
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("took %s, want 5s", took)
				}
			})
		})
		t.Run("PL-04 "+name+", given up", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gone := errors.New("the pod leaves")
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(gone) })
				began := time.Now()
				r, err := (&Prober{dial: tc.dial}).Try(ctx, target(), tc.spec)
				if r != (Result{}) || !errors.Is(err, gone) || time.Since(began) != time.Second {
					t.Errorf("Try: %+v, %v after %s; want no verdict", r, err, time.Since(began))
				}
			})
		})
	}
}

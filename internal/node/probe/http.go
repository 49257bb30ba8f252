// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// httpGet sends the request and judges the answer's status.
func (p *Prober) httpGet(ctx context.Context, t Target, a *corev1.HTTPGetAction,
	timeout time.Duration) (Result, error) {
	request, err := t.Request(ctx, a, userAgent)
	if err != nil {
		return Result{}, err
	}
	client, release := newClient(timeout, p.dial, protocolsOf(a))
	defer release()
	answer, err := client.Do(request)
	if err != nil {
		return failed("%v", err), nil
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	return httpResult(answer.StatusCode, string(body), err), nil
}

// protocolsOf are those of an action: HTTP/2 that is asked for is without TLS, and known beforehand (h2c). Nil are the
// usual ones.
func protocolsOf(a *corev1.HTTPGetAction) *http.Protocols {
	if a.Protocol == nil || *a.Protocol != corev1.HTTPProtocolHTTP2 {
		return nil
	}
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	return h2c
}

// httpResult says what an answer means; err is what ended the reading of its body too early. (Pure.)
func httpResult(status int, body string, err error) Result {
	switch {
	case status < 200 || status >= 400:
		// Without the body: events are read by more people than may see what the application says.
		return failed("HTTP probe failed with statuscode: %d", status)
	case err != nil:
		return failed("HTTP probe failed reading the response body: %v", err)
	case status >= 300:
		return Result{Verdict: Success, Warning: true, Message: "Probe terminated redirects, Response body: " + body}
	}
	return Result{Verdict: Success, Message: body}
}

// NewClient makes an HTTP client for one request of a probe or hook: certificates are not checked (they are the
// application's own), no proxy is used, redirects are followed on the same host only, the answer comes as it was sent.
// timeout zero means none. release closes all that the client has opened; call it when the answer has been read.
func NewClient(timeout time.Duration) (client *http.Client, release func()) {
	return newClient(timeout, new(net.Dialer).DialContext, nil)
}

func newClient(timeout time.Duration, dial dialFunc, protocols *http.Protocols) (client *http.Client, release func()) {
	l := &line{dial: dial}
	l.life, l.end = context.WithCancel(context.Background())
	transport := &http.Transport{
		DialContext:            l.open,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Kubernetes' contract for probes and hooks
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true, // over TLS, if the server speaks nothing else
		MaxResponseHeaderBytes: 256 << 10,
		Protocols:              protocols,
	}
	return &http.Client{Transport: transport, CheckRedirect: follow, Timeout: timeout}, l.close
}

// line keeps the connections of one client. A transport lets a dial or a TLS handshake go on after its request was
// given up (somebody else may want the connection); here nobody else is.
type line struct {
	dial dialFunc
	life context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	conns []net.Conn
}

func (l *line) open(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	conn, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		_ = conn.Close() // nobody waits for it any more
		return nil, net.ErrClosed
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
	for _, c := range l.conns {
		_ = c.Close()
	}
}

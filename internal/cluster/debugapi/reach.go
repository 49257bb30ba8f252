// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

const (
	// dialTime is how long an agent may take to let the API in.
	dialTime = 10 * time.Second
	// answerTime is how long it may take to answer what is not a session.
	answerTime = 30 * time.Second
	// sessionTime is how long it may take to make a session, with an image that is pulled.
	sessionTime = 20 * time.Minute
)

// identity is the API's own, as agents see it, and whom it takes for an agent.
type identity interface {
	Pool() *x509.CertPool
	ClientSide(*tls.CertificateRequestInfo) (*tls.Certificate, error)
}

// reach is how agents are asked.
type reach struct {
	port int
	id   identity
}

// dial opens a connection to the agent of a node, and makes sure that it is that one (DA-07).
func (r *reach) dial(ctx context.Context, agent *corev1.Pod) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(agent.Status.PodIP, strconv.Itoa(r.port)))
	if err != nil && errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nobody{unreachable(agent, err)}
	}
	if err != nil {
		return nil, unreachable(agent, err)
	}
	secure := tls.Client(streams.Records(conn), &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: wire.ServerName(agent.Spec.NodeName), RootCAs: r.id.Pool(),
		GetClientCertificate: r.id.ClientSide, NextProtos: []string{"http/1.1"},
	})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, unreachable(agent, err)
	}
	return secure, nil
}

// nobody is the refusal because nobody listens where the agent was: it has just ended, and is about to begin again.
type nobody struct{ *apierrors.StatusError }

// unreachable says that an agent cannot be reached.
func unreachable(agent *corev1.Pod, err error) *apierrors.StatusError {
	return refusal(http.StatusServiceUnavailable, wire.ReasonAgentUnreachable, agent.Name,
		"the agent of node %s (pod %s in namespace %s) cannot be reached: %v", agent.Spec.NodeName, agent.Name,
		agent.Namespace, err)
}

// to is the URL of a request to an agent.
func to(path string, q url.Values) *url.URL {
	return &url.URL{Scheme: "https", Host: "agent", Path: path, RawQuery: q.Encode()}
}

// session asks the agent for one on behalf of a client that speaks WebSocket.
func (r *reach) session(ctx context.Context, agent *corev1.Pod, s wire.Session, client *http.Request) (
	*streams.Answer, error) {
	return r.stream(ctx, agent, s, client.Header["Sec-Websocket-Key"], client.Header["Sec-Websocket-Version"])
}

// stream asks the agent for the streams of a session by the words of a client.
func (r *reach) stream(ctx context.Context, agent *corev1.Pod, s wire.Session, key, version []string) (
	*streams.Answer, error) {
	q, err := wire.Query(s)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	req := &http.Request{Method: http.MethodGet, URL: to(wire.PathSession, q), Host: "agent", Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {streams.V5},
		"Sec-Websocket-Key": key, "Sec-Websocket-Version": version}}
	conn, err := r.dial(ctx, agent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, sessionTime,
		fmt.Errorf("no session has come about within %s", sessionTime))
	defer cancel()
	answer, err := streams.Ask(ctx, streams.Gather(conn), req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, unreachable(agent, context.Cause(ctx))
	case err != nil:
		return nil, unreachable(agent, err)
	case !answer.Granted():
		answer.Close()
		return nil, refused(agent, answer.StatusCode, answer.Refusal)
	}
	return answer, nil
}

// ask makes a request that is not a session, and reads the answer, which is JSON, into out, if there is one.
func (r *reach) ask(ctx context.Context, agent *corev1.Pod, method, path string, request, out any) error {
	q, err := wire.Query(request)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to(path, q).String(), nil)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	transport := &http.Transport{DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.dial(ctx, agent) }}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return unreachable(agent, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return unreachable(agent, err)
	case resp.StatusCode >= http.StatusMultipleChoices:
		return refused(agent, resp.StatusCode, body)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return unreachable(agent, fmt.Errorf("its answer makes no sense: %w", err))
	}
	return nil
}

// maxAnswer bounds an agent's answer: evidence has the ends of some logs.
const maxAnswer = 16 << 20

// refused is an agent's refusal, in its own words.
func refused(agent *corev1.Pod, code int, body []byte) error {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status == metav1.StatusFailure &&
		status.Code >= http.StatusBadRequest {
		status.TypeMeta = metav1.TypeMeta{}
		return &apierrors.StatusError{ErrStatus: status}
	}
	return unreachable(agent, fmt.Errorf("it has answered %d: %.200s", code, strings.TrimSpace(string(body))))
}

// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/wherryproject/wherry/internal/streams"
)

// Forwarder is a runtime that reaches the ports of pods.
type Forwarder interface {
	// DialPod returns what connects to a port from inside the network of a pod's sandbox; a sandbox without one is an
	// error of the CRI's.
	DialPod(ctx context.Context, sandboxID string) (dial func(ctx context.Context, port int32) (net.Conn, error),
		err error)
}

// forward joins a client with ports of a pod (EC-14), by the protocol that it speaks.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, pod *corev1.Pod, sandboxID string, tunnel bool) {
	dial, err := s.config.Forward.DialPod(r.Context(), sandboxID)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	options := &portforward.V4Options{}
	if !tunnel {
		if options, err = portforward.NewV4Options(r); err != nil {
			s.refuse(w, r, fail(http.StatusBadRequest, "%w", err))
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	w = streams.Watch(w, cancel)
	serve := func(w http.ResponseWriter, r *http.Request) {
		portforward.ServePortForward(w, r, ports{ctx, dial}, pod.Namespace+"/"+pod.Name, string(pod.UID), options,
			streamIdle, streamCreation, portforward.SupportedProtocols)
	}
	if tunnel {
		proxy.NewTunnelingHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serve(&upgrading{ResponseWriter: w}, r)
		})).ServeHTTP(w, r)
		return
	}
	serve(w, r)
}

// upgrading writes the answer that switches protocols onto the connection itself, as a proxied server's comes: the
// tunnel reads it there, and takes none by WriteHeader.
type upgrading struct {
	http.ResponseWriter
	switches bool
}

// WriteHeader implements http.ResponseWriter.
func (u *upgrading) WriteHeader(code int) {
	if u.switches = code == http.StatusSwitchingProtocols; !u.switches {
		u.ResponseWriter.WriteHeader(code)
	}
}

// Hijack implements http.Hijacker.
func (u *upgrading) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil || !u.switches {
		return conn, rw, err
	}
	if rw == nil { // the tunnel has read nothing ahead
		rw = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
	}
	answer := http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: u.Header()}
	if err := answer.Write(conn); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, rw, nil
}

// ports are those of one pod, for one client, while it is there.
type ports struct {
	client context.Context
	dial   func(ctx context.Context, port int32) (net.Conn, error)
}

// halfClosed is how long a program in a pod may say nothing to a client that says nothing more. A client that is gone
// and one that only waits for an answer look alike.
const halfClosed = time.Minute

// PortForward implements portforward.PortForwarder: it joins a stream with a port until both sides have ended, the
// client is gone, or, when it says nothing more, the program is silent for a minute.
func (p ports) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := p.dial(p.client, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(p.client, func() { _ = conn.Close() })()
	program := &program{Conn: conn}
	go func() {
		_, _ = io.Copy(conn, stream) // what a program does not take it says by its own end
		program.heardAll()
	}()
	_, err = io.Copy(stream, program)
	if p.client.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// program is a connection to a program in a pod.
type program struct {
	net.Conn
	all atomic.Bool // the client says nothing more
}

// heardAll notifies the program that its client says nothing more; from now on it must not be silent for long.
func (p *program) heardAll() {
	p.all.Store(true)
	_ = streams.CloseWrite(p.Conn)
	_ = p.SetReadDeadline(time.Now().Add(halfClosed)) // also for a read under way
}

// Read implements io.Reader.
func (p *program) Read(b []byte) (int, error) {
	if p.all.Load() {
		if err := p.SetReadDeadline(time.Now().Add(halfClosed)); err != nil {
			return 0, err
		}
	}
	return p.Conn.Read(b)
}

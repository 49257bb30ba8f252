// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"time"

	"github.com/gorilla/websocket"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/oneline"
	"github.com/wherryproject/wherry/internal/streams"
)

// protocol is the WebSocket protocol for streams that can be closed one by one (KEP-4006).
const protocol = streams.V5

const (
	bufferSize = streams.Largest + 64 // a server's message, its channel and its head
	// inputSize is how much of the input goes into one message at most; a message is one frame. A copy into a pod has
	// much to say at once.
	inputSize   = 256 << 10
	maxRefusal  = 1 << 20
	refusalTime = 10 * time.Second
)

// Dial connects to a server for the streams of a URL. It fails with a *Refusal, with ErrNoWebSocket, or with another
// error, by Reached before or after the server was there.
type Dial func(ctx context.Context, u *url.URL) (*websocket.Conn, error)

// Server is how a server is reached and what it is shown.
type Server struct {
	TLS    *tls.Config
	Header http.Header
	Proxy  func(*http.Request) (*url.URL, error) // may be nil: none
	// Connected is called when the server is there and before it is asked; it may be nil.
	Connected func()
	// Note is called with what the server has for the user beside the streams it has granted; it may be nil.
	Note func(text string)
}

// UserAgent is what the server knows these requests by.
const UserAgent = "wherry (" + runtime.GOOS + "/" + runtime.GOARCH + ")"

// unreached is the error of a connection that did not come about: nothing was asked of the server.
type unreached struct{ error }

// Unwrap is for package errors.
func (u unreached) Unwrap() error { return u.error }

// Reached reports whether an error of a Dial came after the server had been asked.
func Reached(err error) bool {
	_, before := errors.AsType[unreached](err)
	return !before
}

// Dial is a Dial.
func (s Server) Dial(ctx context.Context, u *url.URL) (*websocket.Conn, error) {
	d := websocket.Dialer{Proxy: s.Proxy, TLSClientConfig: s.TLS, Subprotocols: []string{protocol},
		ReadBufferSize: bufferSize, WriteBufferSize: inputSize + 1}
	line, err := s.direct(ctx, &d, u)
	if err != nil {
		return nil, err
	}
	to := *u
	to.Scheme = map[string]string{"https": "wss", "http": "ws"}[u.Scheme]
	if s.Connected != nil {
		s.Connected()
	}
	header := s.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", UserAgent)
	}
	conn, resp, err := d.DialContext(ctx, to.String(), header)
	if err == nil && conn.Subprotocol() != protocol {
		conn.Close()
		return nil, fmt.Errorf("%w: it chose %q", ErrNoWebSocket, conn.Subprotocol())
	}
	if errors.Is(err, websocket.ErrBadHandshake) {
		return nil, refusalOf(resp.StatusCode, line.body(resp))
	}
	if line != nil {
		line.decided(err == nil)
	}
	if err == nil && s.Note != nil {
		for _, text := range resp.Header.Values(wire.HeaderNote) {
			s.Note(oneline.Of(text))
		}
	}
	return conn, err
}

// direct connects, unless there is a proxy to connect through, and has d use that connection.
func (s Server) direct(ctx context.Context, d *websocket.Dialer, u *url.URL) (*line, error) {
	if s.Proxy != nil {
		if proxy, err := s.Proxy(&http.Request{URL: u}); err != nil || proxy != nil {
			return nil, err
		}
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, unreached{err}
	}
	if u.Scheme == "https" {
		config := s.TLS.Clone()
		if config == nil {
			config = &tls.Config{}
		}
		if config.ServerName == "" {
			config.ServerName = u.Hostname()
		}
		config.NextProtos = nil // HTTP/2 has no such upgrades
		secure := tls.Client(streams.Records(conn), config)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, unreached{err}
		}
		conn = streams.Gather(secure)
	}
	l := &line{Conn: conn}
	use := func(context.Context, string, string) (net.Conn, error) { return l, nil }
	d.NetDialContext, d.NetDialTLSContext, d.Proxy = use, use, nil
	return l, nil
}

// line is a connection that remembers what it heard until it is decided whether it is a refusal: the library keeps the
// first 1024 bytes of a refusal, and closes the connection then.
type line struct {
	net.Conn
	heard bytes.Buffer
	done  bool // decided
}

// Read is part of net.Conn.
func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if !l.done {
		l.heard.Write(p[:n])
	}
	return n, err
}

// Close is part of net.Conn.
func (l *line) Close() error {
	if !l.done {
		return nil
	}
	return l.Conn.Close()
}

func (l *line) decided(well bool) {
	l.done = true
	l.heard = bytes.Buffer{}
	if !well {
		l.Conn.Close()
	}
}

// body is all of a refusal's body; what the library kept of it where the connection is not a line of ours.
func (l *line) body(kept *http.Response) []byte {
	if l == nil {
		text, _ := io.ReadAll(kept.Body) // from memory
		return text
	}
	defer l.decided(false)
	_ = l.Conn.SetDeadline(time.Now().Add(refusalTime))
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(&l.heard, l.Conn)), nil)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came of it says more than nothing
	return text
}

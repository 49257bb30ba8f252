// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/streams"
	"github.com/wherryproject/wherry/internal/ui/gate"
)

// Before serves a page in front of the API of this process, to which people sign in with a bearer token. It comes
// before the chain, for whoever has not signed in needs the page in order to; what the page asks goes through the whole
// chain.
func Before(chain http.Handler, o Options) http.Handler {
	o.SignIn, o.API = ByToken, Within(chain)
	page := New(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", gate.Prefix) {
			page.ServeHTTP(w, r)
			return
		}
		chain.ServeHTTP(w, r)
	})
}

// Within is the API of this process, by its chain of handlers: who asks, what they may and what is put on record is
// decided there, as for any other client.
func Within(chain http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chain.ServeHTTP(&filtered{ResponseWriter: w, own: w.Header().Clone(), ended: endOf(r.Context())}, r)
	})
}

// filtered is a response whose headers are those that the page lets through, and its own. It has no Unwrap method:
// Kubernetes' libraries would look through it.
type filtered struct {
	http.ResponseWriter
	own   http.Header
	ended context.Context // done with the session
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (f *filtered) WriteHeader(code int) {
	if !f.begun {
		answered(f.Header())
		maps.Copy(f.Header(), f.own)
		f.begun = code >= http.StatusOK
	}
	f.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (f *filtered) Write(p []byte) (int, error) {
	if !f.begun {
		f.WriteHeader(http.StatusOK)
	}
	return f.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (f *filtered) Flush() {
	if !f.begun {
		f.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(f.ResponseWriter).Flush() // which every response of net/http can
}

// SetReadDeadline is for http.ResponseController, which finds no way through without an Unwrap method.
func (f *filtered) SetReadDeadline(at time.Time) error {
	return http.NewResponseController(f.ResponseWriter).SetReadDeadline(at)
}

// SetWriteDeadline likewise.
func (f *filtered) SetWriteDeadline(at time.Time) error {
	return http.NewResponseController(f.ResponseWriter).SetWriteDeadline(at)
}

// Hijack implements http.Hijacker. What takes the connection over does not hear of the request's end any more: the
// session's closes it.
func (f *filtered) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(streams.Wrap(f.ResponseWriter, func(conn net.Conn) net.Conn {
		stop := context.AfterFunc(f.ended, func() { _ = conn.Close() })
		return &ending{streams.Half{Conn: conn}, stop}
	})).Hijack()
}

// ending is a connection that ends with a session, unless it has been closed before.
type ending struct {
	streams.Half
	stop func() bool
}

// Close implements net.Conn.
func (e *ending) Close() error {
	e.stop()
	return e.Half.Close()
}

// CloseNotify implements http.CloseNotifier, without which Kubernetes' libraries do not take a response for one that
// can be flushed.
func (f *filtered) CloseNotify() <-chan bool {
	if inner, ok := f.ResponseWriter.(http.CloseNotifier); ok {
		return inner.CloseNotify()
	}
	return make(chan bool)
}

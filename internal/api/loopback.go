// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api/authn"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/socketpair"
)

// loopback serves the same handlers as the TLS port on connections that never leave the process. Who is on the other
// side is decided as always: by a token, here one that only the returned rest.Config knows.
type loopback struct {
	listener *socketpair.Listener
	server   *http.Server
	config   *rest.Config
	done     chan struct{}
}

// idleInside is how long a connection within the process is kept for the next request. One costs two descriptors and
// buffers at both ends; a new one costs almost nothing.
const idleInside = 15 * time.Second

// idleMost is how many are kept.
const idleMost = 100

func newLoopback(inside *registry.Inside) (*loopback, error) {
	token, err := authn.RandomToken()
	if err != nil {
		return nil, err
	}
	l := &loopback{listener: socketpair.New(), done: make(chan struct{})}
	if inside != nil {
		l.listener = inside.Loopback
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return l.listener.Dial(ctx) }
	l.config = &rest.Config{
		Host:        "http://wherry.internal",
		BearerToken: token,
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		DisableCompression: true,
		QPS:                -1, // in-process clients are not throttled
		UserAgent:          "wherry",
		// client-go's own would keep them for 90 s, some for each component, after the busiest moment.
		Transport: &http.Transport{DialContext: dial, IdleConnTimeout: idleInside, MaxIdleConnsPerHost: idleMost,
			DisableCompression: true},
	}
	return l, nil
}

func (l *loopback) serve(handler http.Handler) {
	l.server = &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}
	go func() {
		defer close(l.done)
		_ = l.server.Serve(l.listener) // always http.ErrServerClosed, or the listener's own end
	}()
}

// close waits until running requests are done or ctx is, then cuts the connections.
func (l *loopback) close(ctx context.Context) error {
	if l.server == nil {
		return l.listener.Close()
	}
	err := l.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = l.server.Close()
	}
	<-l.done
	return err
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/ui"
)

// apiOf is the API that a kubeconfig leads to, and its host.
func apiOf(client *reach.Client) (http.Handler, string, error) {
	base, _, err := rest.DefaultServerUrlFor(client.Config)
	if err != nil {
		return nil, "", err
	}
	transport, err := rest.TransportFor(client.Config)
	if err != nil {
		return nil, "", err
	}
	words := func(err error) string {
		if away, ok := errors.AsType[*reach.Away](err); ok {
			return away.Error()
		}
		return ui.Words(base)(err)
	}
	return ui.Remote(base, transport, words, slog.New(slog.DiscardHandler)), base.Host, nil
}

// serveUI serves a page until ctx is done. Streams that are open then are cut: a watch would last for ever.
func serveUI(ctx context.Context, l net.Listener, page http.Handler) error {
	streams, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           withFrontDoor(page),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// about clients, who see it themselves
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return streams },
	}
	defer context.AfterFunc(ctx, func() {
		cut()
		_ = server.Close() // the process ends in a moment
	})()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// withFrontDoor leads to the page whoever leaves out its path.
func withFrontDoor(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			http.Redirect(w, r, "/ui/", http.StatusFound)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"log"
	"net"
	"net/http"
	"time"
)

// readOnlyTime is how long an answer may take there to be read: clients are not authenticated, and without an end to it
// they would hold their connections for ever.
const readOnlyTime = 30 * time.Second

// StartReadOnly serves on l, which it owns from now on, what the kubelet's read-only port has: pods, figures and
// health, to anybody and without TLS. Nothing there starts or changes anything, or shows what pods print.
func (s *Server) StartReadOnly(l net.Listener) {
	s.readOnly = &http.Server{
		Handler:           limitConns(s.config.ReadOnlyConns, s.counted(s.readOnlyRoutes())),
		ReadHeaderTimeout: s.http.ReadHeaderTimeout,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      readOnlyTime,
		IdleTimeout:       s.http.IdleTimeout,
		BaseContext:       s.http.BaseContext,
		ErrorLog:          log.New(errorLog{s.logger}, "", 0),
	}
	s.serving.Go(func() {
		if s.config.ReadOnlyConns != nil {
			l = s.config.ReadOnlyConns.Listener(l)
		}
		if err := s.readOnly.Serve(s.conns.track(l)); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("read-only port of the kubelet API stopped serving", "address", l.Addr().String(), "err",
				err)
		}
	})
}

func (s *Server) readOnlyRoutes() http.Handler {
	mux := http.NewServeMux()
	s.watchers(mux)
	return mux
}

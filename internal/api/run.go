// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Run serves until ctx is done, then drains: running requests get a few seconds, watches are ended. It returns nil
// after a clean stop. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	prepared := s.generic.PrepareRun()
	s.loopback.serve(s.generic.Handler)
	watch, cancel := context.WithCancel(ctx)
	go s.watchReady(watch)
	var counting sync.WaitGroup
	counting.Go(func() { s.quotas.Run(watch) })
	if s.flow != nil {
		counting.Go(func() { s.flow.Run(watch) })
	}
	counting.Go(func() { s.authorizers.Run(watch) })
	counting.Go(func() { s.admission.Run(watch) })
	counting.Go(func() { s.kubeletCert.Run(watch) })
	defer context.AfterFunc(ctx, s.admission.Stop)() // its watches are ended, not drained
	serving, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() {
		s.settle(drainTime)
		leave()
	})()
	err := prepared.RunWithContext(serving)
	cancel()
	counting.Wait()
	stop, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	err = errors.Join(err, s.loopback.close(stop))
	s.free()
	return err
}

// settle waits, but not for ever, until the start is over for the library: a hook of the custom resources takes a stop
// for a failure, for which the library ends the whole process.
func (s *Server) settle(longest time.Duration) {
	patience := time.NewTimer(longest)
	defer patience.Stop()
	for _, done := range s.custom.Generic().MuxAndDiscoveryCompleteSignals() {
		select {
		case <-done:
		case <-patience.C:
			return
		}
	}
}

// free lets go of what New took.
func (s *Server) free() {
	if s.listener != nil {
		s.listener.Close()
	}
	if s.authn != nil {
		s.authn.Close()
	}
	if s.debugger != nil {
		s.debugger.Close()
	}
	if s.admission != nil {
		s.admission.Close()
	}
	if s.quotas != nil {
		s.quotas.Close()
	}
	if err := s.recorder.Close(); err != nil {
		s.log.Error("cannot close the audit log", "err", err)
	}
	s.stores.Close()
	if s.custom != nil {
		s.custom.Generic().Destroy()
	}
	if s.kubelets != nil {
		s.kubelets.Close()
		s.proxies.CloseIdleConnections()
		s.nodePorts.CloseIdleConnections()
	}
}

// watchReady asks /readyz until it says yes.
func (s *Server) watchReady(ctx context.Context) {
	client, err := rest.HTTPClientFor(s.loopback.config)
	if err != nil {
		s.log.Error("cannot watch readiness", "err", err)
		return
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.loopback.config.Host+"/readyz", nil)
		if err != nil {
			return
		}
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				close(s.ready)
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

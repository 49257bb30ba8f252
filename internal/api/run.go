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
	prepared := s.served.generic.PrepareRun()
	s.ways.loopback.serve(s.served.generic.Handler)
	watch, cancel := context.WithCancel(ctx)
	go s.watchReady(watch)
	var counting sync.WaitGroup
	counting.Go(func() { s.judges.quotas.Run(watch) })
	if s.served.flow != nil {
		counting.Go(func() { s.served.flow.Run(watch) })
	}
	counting.Go(func() { s.judges.rights.Run(watch) })
	counting.Go(func() { s.judges.admission.Run(watch) })
	counting.Go(func() { s.who.kubeletCert.Run(watch) })
	counting.Go(func() { s.who.frontCert.Run(watch) })
	defer context.AfterFunc(ctx, s.judges.admission.Stop)() // its watches are ended, not drained
	defer context.AfterFunc(ctx, s.served.aggregation.Stop)()
	defer context.AfterFunc(ctx, s.served.nodeNetwork.Stop)()
	serving, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() {
		s.awaitStart(drainTime)
		leave()
	})()
	err := prepared.RunWithContext(serving)
	cancel()
	counting.Wait()
	stop, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	err = errors.Join(err, s.ways.loopback.close(stop))
	s.free()
	return err
}

// awaitStart waits, but not for ever, until the start is over for the library: a hook of the custom resources takes a
// stop for a failure, for which the library ends the whole process.
func (s *Server) awaitStart(longest time.Duration) {
	patience := time.NewTimer(longest)
	defer patience.Stop()
	for _, done := range s.served.custom.Generic().MuxAndDiscoveryCompleteSignals() {
		select {
		case <-done:
		case <-patience.C:
			return
		}
	}
}

// watchReady asks /readyz until it says yes.
func (s *Server) watchReady(ctx context.Context) {
	client, err := rest.HTTPClientFor(s.ways.loopback.config)
	if err != nil {
		s.log.Error("cannot watch readiness", "err", err)
		return
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.ways.loopback.config.Host+"/readyz", nil)
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

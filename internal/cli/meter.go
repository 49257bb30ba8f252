// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// meter shows on a terminal how much has been copied, once that takes longer than a second.
type meter struct {
	out   io.Writer
	bytes atomic.Int64
	done  chan struct{}
	wg    sync.WaitGroup
}

func newMeter(t Terminal, quiet bool) *meter {
	m := &meter{out: t.Err, done: make(chan struct{})}
	if quiet || !isTerminal(t.Err) {
		return m
	}
	m.wg.Go(m.show)
	return m
}

func (m *meter) show() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	shown := false
	for {
		select {
		case <-m.done:
			if shown {
				fmt.Fprint(m.out, "\r\x1b[K")
			}
			return
		case <-tick.C:
			fmt.Fprintf(m.out, "\r\x1b[K%.1f MiB", float64(m.bytes.Load())/(1<<20))
			shown = true
		}
	}
}

func (m *meter) stop() {
	close(m.done)
	m.wg.Wait()
}

// writer counts what is written to w.
func (m *meter) writer(w io.Writer) io.Writer { return &metered{m, w} }

type metered struct {
	m *meter
	w io.Writer
}

func (w *metered) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.m.bytes.Add(int64(n))
	return n, err
}

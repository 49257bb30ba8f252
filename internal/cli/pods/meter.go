// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
)

// meter shows on a terminal how much has been copied, and of how much, once that takes longer than a second.
type meter struct {
	shows bool
	total atomic.Int64 // 0: not known
	out   io.Writer
	bytes atomic.Int64
	done  chan struct{}
	wg    sync.WaitGroup
}

func newMeter(t cmdline.Terminal, quiet bool) *meter {
	m := &meter{out: plain.Own(t.Err), done: make(chan struct{})}
	if quiet || !cmdline.IsTerminal(t.Err) {
		return m
	}
	m.shows = true
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
			fmt.Fprint(m.out, "\r\x1b[K"+m.text())
			shown = true
		}
	}
}

// text is how far the copy is. An archive is a little larger than the files in it.
func (m *meter) text() string {
	const mib = 1 << 20
	now, total := m.bytes.Load(), m.total.Load()
	if total == 0 {
		return fmt.Sprintf("%.1f MiB", float64(now)/mib)
	}
	now = min(now, total)
	return fmt.Sprintf("%.1f of %.1f MiB (%d%%)", float64(now)/mib, float64(total)/mib, 100*now/total)
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

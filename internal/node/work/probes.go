// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"time"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// ProbeFailure is the error of a Probe whose try was answered with no. Any other error of one says that it could not be
// tried, which counts for nothing.
type ProbeFailure struct{ Message string }

func (f *ProbeFailure) Error() string { return f.Message }

// tried takes in what one try of a probe told (PL-04). A try between ticks counts only if it succeeded.
func (w *Worker) tried(c *call, r returned) {
	key := plan.ProbeKey{Container: r.key.Container, Attempt: r.key.Attempt, Kind: r.key.Probe}
	f := w.heard.Probes[key]
	var no *ProbeFailure
	f.Last = time.Now()
	if c.op.Early {
		f.Early++
	} else {
		f.Tick = c.began
	}
	switch {
	case c.cancelled:
		return
	case r.err == nil:
		f.Passed, f.Failed, f.Message = f.Passed+1, 0, ""
	case errors.As(r.err, &no) && !c.op.Early:
		f.Passed, f.Failed, f.Message = 0, f.Failed+1, no.Message
	case no == nil:
		w.log.Warn("cannot run probe", "container", key.Container, "probe", key.Kind.String(), "err", r.err)
	}
	w.heard.Probes[key] = f
}

// forgetProbes drops what was heard of probes, hooks and resizes of attempts before the one that has started.
func (w *Worker) forgetProbes(started plan.Key) {
	for k := range w.heard.Probes {
		if k.Container == started.Container && k.Attempt < started.Attempt {
			delete(w.heard.Probes, k)
		}
	}
	for k := range w.heard.Given {
		if k.Container == started.Container && k.Attempt < started.Attempt {
			delete(w.heard.Given, k)
		}
	}
	for k := range w.heard.Done {
		if k.Container == started.Container && k.Attempt < started.Attempt {
			delete(w.heard.Done, k)
		}
	}
}

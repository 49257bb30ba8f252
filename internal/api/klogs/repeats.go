// SPDX-License-Identifier: Apache-2.0

package klogs

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// repeats finds errors that autoscalers log again and again: one without metrics, such as that of a Deployment whose
// pods request no CPU, logs so every five seconds for as long as it exists. The error is logged once, and again when
// the reason has changed or the problem has come back; the autoscaler's conditions show it all the time.
type repeats struct {
	mu   sync.Mutex
	last map[string]logged // the last error of each target
}

type logged struct {
	text string
	at   time.Time
}

const (
	// aboutTarget is how an autoscaler's errors begin, before the target and a colon.
	aboutTarget = "failed to compute desired number of replicas based on listed metrics for "
	// quietFor is how long an error is not logged again. It is many times the interval at which autoscalers work.
	quietFor = 2 * time.Minute
	// mostTargets bounds how many targets are remembered. If there are more, those without recent errors are forgotten.
	mostTargets = 256
)

func newRepeats() *repeats { return &repeats{last: map[string]logged{}} }

// has reports whether a record repeats the last error of its target.
func (p *repeats) has(r slog.Record) bool {
	text := ""
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && a.Key == "err" {
			text = err.Error()
		}
		return text == ""
	})
	rest, ok := strings.CutPrefix(text, aboutTarget)
	if !ok {
		return false
	}
	target, _, _ := strings.Cut(rest, ": ")
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.last[target]
	if _, has := p.last[target]; !has && len(p.last) >= mostTargets {
		p.forget(r.Time)
	}
	p.last[target] = logged{text, r.Time}
	return before.text == text && r.Time.Sub(before.at) < quietFor
}

func (p *repeats) forget(now time.Time) {
	for target, s := range p.last {
		if now.Sub(s.at) >= quietFor {
			delete(p.last, target)
		}
	}
}

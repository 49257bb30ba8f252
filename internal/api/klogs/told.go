// SPDX-License-Identifier: Apache-2.0

package klogs

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// told remembers what autoscalers have said of their targets: one without figures, such as that of a Deployment whose
// pods request no CPU, says so every five seconds for as long as it is there. A person reads it once, and again when
// the reason has changed or the trouble comes back; its object's conditions have it all the time.
type told struct {
	mu   sync.Mutex
	last map[string]said // by the target, as the texts begin
}

type said struct {
	text string
	at   time.Time
}

const (
	// aboutTarget is how an autoscaler's errors begin, before the target and a colon.
	aboutTarget = "failed to compute desired number of replicas based on listed metrics for "
	// toldFor is how long something is not told again. It is longer than from one look of an autoscaler's to the next,
	// many times.
	toldFor = 2 * time.Minute
	// mostTold bounds what is remembered: what is over is forgotten then.
	mostTold = 256
)

func newTold() *told { return &told{last: map[string]said{}} }

// again tells whether a record says the same of a target as the one before.
func (t *told) again(r slog.Record) bool {
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
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.last[target]
	if _, has := t.last[target]; !has && len(t.last) >= mostTold {
		t.forget(r.Time)
	}
	t.last[target] = said{text, r.Time}
	return before.text == text && r.Time.Sub(before.at) < toldFor
}

func (t *told) forget(now time.Time) {
	for target, s := range t.last {
		if now.Sub(s.at) >= toldFor {
			delete(t.last, target)
		}
	}
}

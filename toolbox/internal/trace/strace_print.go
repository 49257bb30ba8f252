// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

func (t *tracer) line(pid int, format string, args ...any) {
	if t.summary {
		return
	}
	var b strings.Builder
	if t.many {
		fmt.Fprintf(&b, "[pid %d] ", pid)
	}
	if t.clock {
		b.WriteString(time.Now().Format("15:04:05.000000 "))
	}
	fmt.Fprintf(&b, format+"\n", args...)
	_, _ = io.WriteString(t.out, b.String())
}

func (t *tracer) report() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write()
}

// write prints the summary.
func (t *tracer) write() {
	if !t.summary {
		return
	}
	fmt.Fprintf(t.out, "%12s %8s %8s %s\n", "seconds", "calls", "errors", "syscall")
	for _, n := range slices.SortedFunc(maps.Keys(t.calls), func(a, b string) int { return cmp.Compare(t.calls[b].time, t.calls[a].time) }) {
		s := t.calls[n]
		fmt.Fprintf(t.out, "%12.6f %8d %8d %s\n", s.time.Seconds(), s.calls, s.errors, n)
	}
}

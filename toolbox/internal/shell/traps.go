// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// traps are what to do about signals. EXIT and ERR are the interpreter's.
type traps struct {
	mu      sync.Mutex
	of      map[syscall.Signal]trap
	named   map[string]string // the shell's own on EXIT and ERR, as they were written
	pending []syscall.Signal
	came    chan os.Signal   // read with mu held only, so that what has come is always either here or pending
	bell    chan os.Signal   // says that something came
	wake    func()           // ends a wait
	stops   map[*func()]bool // those that are to be called when something came
	begun   bool             // signals are collected
	piped   bool             // the trap of SIGPIPE is run: what it writes to such a pipe does not make it due again
}

// trap is what to do about one.
type trap struct {
	text  string // as it was written; empty to ignore the signal
	code  string // rewritten
	below bool   // a subshell has set it, and it runs where it is seen that the signal came
}

func newTraps(wake func()) *traps {
	return &traps{of: map[syscall.Signal]trap{}, named: map[string]string{}, stops: map[*func()]bool{},
		came: make(chan os.Signal, 16), bell: make(chan os.Signal, 1), wake: wake}
}

// first is the signal whose trap is to run next, or 0. That of the shell itself is none to a subshell.
func (t *traps) first(below bool) syscall.Signal {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sig := range t.pending {
		if t.concerns(sig, below) {
			return sig
		}
	}
	return 0
}

// concerns tells whether a subshell, or the shell itself, runs the trap of a signal. SIGPIPE is only for whoever has
// written. The caller holds mu.
func (t *traps) concerns(sig syscall.Signal, below bool) bool {
	if sig == unix.SIGPIPE {
		return t.of[sig].below == below
	}
	return !below || t.of[sig].below
}

// has tells whether there is a trap for a signal.
func (t *traps) has(sig syscall.Signal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.of[sig]
	return ok
}

// take is the code to be run now, for all signals that came: also for one that a program sent, as its last deed, which
// has just ended. In a subshell, those that have their traps from the shell itself are left to it.
func (t *traps) take(below bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	var b strings.Builder
	t.pending = slices.DeleteFunc(t.pending, func(sig syscall.Signal) bool {
		if !t.concerns(sig, below) {
			return false
		}
		b.WriteString(t.of[sig].code + "\n")
		if sig == unix.SIGPIPE {
			t.piped = true
			b.WriteString(inner + "piped\n")
		}
		return true
	})
	return b.String()
}

// ends is the signal that ends a subshell, or 0: a terminal sends it to the shell and to those alike, and only the
// shell has a trap for it.
func (t *traps) ends() syscall.Signal {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	for _, sig := range t.pending {
		if (sig == unix.SIGINT || sig == unix.SIGQUIT) && !t.of[sig].below {
			return sig
		}
	}
	return 0
}

// waiting tells whether take has something.
func (t *traps) waiting(below bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
	return slices.ContainsFunc(t.pending, func(sig syscall.Signal) bool { return t.concerns(sig, below) })
}

// look notes what has come up to now. The caller holds mu.
func (t *traps) look() {
	if len(t.of) > 0 {
		t.deliver()
		t.gather()
	}
}

// deliver returns when the signals that the kernel has for this process are in the channels.
func (t *traps) deliver() {
	t.arrive(time.Now().Add(patience))
	t.handOn()
}

// gather notes what has come. The caller holds mu.
func (t *traps) gather() {
	for {
		select {
		case sig := <-t.came:
			if number, ok := sig.(syscall.Signal); ok && t.of[number].code != "" &&
				!slices.Contains(t.pending, number) {
				t.pending = append(t.pending, number)
			}
		default:
			return
		}
	}
}

// collect notes signals as they come.
func (t *traps) collect() {
	for range t.bell { // perhaps before it is in the other channel
		t.mu.Lock()
		t.deliver()
		t.gather()
		for stop := range t.stops {
			(*stop)()
		}
		t.mu.Unlock()
		t.wake()
	}
}

// any tells whether there is a trap that a signal may run.
func (t *traps) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.catches()
}

// until is a context that ends when there is a trap to run, for what waits in a subshell, or in the shell itself.
func (t *traps) until(ctx context.Context, below bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := func() {
		if slices.ContainsFunc(t.pending, func(sig syscall.Signal) bool { return t.concerns(sig, below) }) {
			cancel()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stops[&stop] = true
	t.look()
	stop()
	return ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.stops, &stop)
		cancel()
	}
}

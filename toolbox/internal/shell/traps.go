// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"github.com/wherryproject/wherry/toolbox/internal/procs"
)

// traps are what to do about signals. EXIT and ERR are the interpreter's.
type traps struct {
	mu      sync.Mutex
	code    map[syscall.Signal]string // rewritten; empty to ignore the signal
	below   map[syscall.Signal]bool   // those that a subshell has set, which run where it is seen that they came
	pending []syscall.Signal
	came    chan os.Signal // read with mu held only, so that what has come is always either here or pending
	bell    chan os.Signal // says that something came
	wake    func()         // ends a wait
	begun   bool           // signals are collected
	piped   bool           // the trap of SIGPIPE is run: what it writes to such a pipe does not make it due again
}

func newTraps(wake func()) *traps {
	return &traps{code: map[syscall.Signal]string{}, below: map[syscall.Signal]bool{}, came: make(chan os.Signal, 16),
		bell: make(chan os.Signal, 1), wake: wake}
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
		return t.below[sig] == below
	}
	return !below || t.below[sig]
}

// has tells whether there is a trap for a signal.
func (t *traps) has(sig syscall.Signal) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.code[sig]
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
		b.WriteString(t.code[sig] + "\n")
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
		if (sig == unix.SIGINT || sig == unix.SIGQUIT) && !t.below[sig] {
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
	if len(t.code) > 0 {
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
			if number, ok := sig.(syscall.Signal); ok && t.code[number] != "" && !slices.Contains(t.pending, number) {
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
		t.mu.Unlock()
		t.wake()
	}
}

// trap is the command. What is about EXIT and ERR is left to the interpreter.
func (s *session) trap(hc interp.HandlerContext, args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0, args[0] == "-p":
		s.traps.show(hc, args)
		return []string{"trap"}
	case args[0] == "-l":
		return []string{own + "kill", "-l"}
	}
	action, names := args[0], args[1:]
	if _, err := strconv.Atoi(action); err == nil || len(args) == 1 {
		action, names = "-", args
	}
	if source, err := s.rewriter.rewritten(action); err == nil && action != "-" {
		action = source
	}
	theirs := []string{"trap", action}
	onExit := false
	for _, name := range names {
		switch name := strings.TrimPrefix(strings.ToUpper(name), "SIG"); name {
		case "EXIT", "0":
			onExit = inSubshell(hc)
			theirs = append(theirs, "EXIT")
			continue
		case "ERR", "DEBUG", "RETURN":
			if name == "ERR" && s.isShell(hc) {
				s.left.onErr = action != "-"
			}
			theirs = append(theirs, name)
			continue
		}
		sig, err := procs.ParseSignal(name)
		if err != nil || sig == 0 {
			fmt.Fprintf(hc.Stderr, "trap: %s is not a signal (trap -l lists them)\n", name)
			return []string{"false"}
		}
		s.setTrap(sig, action, below(hc))
	}
	if onExit {
		return keepTrap(action)
	}
	if len(theirs) == 2 {
		return []string{"true"}
	}
	return theirs
}

func (s *session) setTrap(sig syscall.Signal, action string, below bool) {
	t := s.traps
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		t.begun = true
		go t.collect()
	}
	t.below[sig] = below
	if sig == unix.SIGPIPE { // what another subshell has left, which has ended
		t.piped = false
		t.pending = slices.DeleteFunc(t.pending, func(sig syscall.Signal) bool { return sig == unix.SIGPIPE })
	}
	switch action {
	case "-":
		delete(t.code, sig)
		signal.Reset(sig)
		if s.ending != nil && (sig == unix.SIGTERM || sig == unix.SIGHUP) {
			signal.Notify(s.ending, sig)
		}
		if s.asked != nil && sig == unix.SIGTSTP {
			signal.Notify(s.asked, sig)
		}
		if s.interactive != nil && slices.Contains(shellSignals(), os.Signal(sig)) {
			signal.Notify(s.interactive, sig)
		}
	case "":
		t.code[sig] = ""
		signal.Ignore(sig)
	default:
		t.code[sig] = action
		signal.Notify(t.came, sig)
		signal.Notify(t.bell, sig)
	}
}

// shellSignals are those that a shell on a terminal takes care of.
func shellSignals() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}
}

// show prints the traps as the commands that set them.
func (t *traps) show(hc interp.HandlerContext, args []string) {
	_, _ = io.WriteString(hc.Stdout, t.list(args)) // with the lock free: who reads it may need that first
}

func (t *traps) list(args []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, sig := range slices.Sorted(maps.Keys(t.code)) {
		name := unix.SignalName(sig)
		if len(args) > 1 && !slices.Contains(args, name) && !slices.Contains(args, strings.TrimPrefix(name, "SIG")) {
			continue
		}
		fmt.Fprintf(&b, "trap -- %s%s\n", quote([]string{strings.TrimSpace(t.code[sig])}),
			strings.TrimPrefix(name, "SIG"))
	}
	return b.String()
}

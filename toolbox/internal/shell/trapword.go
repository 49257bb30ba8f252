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
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"github.com/wherryproject/wherry/toolbox/internal/procs"
)

// trap is the command. What is about EXIT and ERR is left to the interpreter.
func (s *session) trap(hc interp.HandlerContext, args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0, args[0] == "-p":
		s.showTraps(hc, args)
		return []string{inner + "status", "0"}
	case args[0] == "-l":
		return []string{own + "kill", "-l"}
	}
	action, names := args[0], args[1:]
	if _, err := strconv.Atoi(action); err == nil || len(args) == 1 {
		action, names = "-", args
	}
	code := action
	if source, err := s.rewriter.rewritten(action, place{function: true}); err == nil && action != "-" {
		code = source
	}
	var theirs []string
	for _, name := range names {
		switch name := strings.TrimPrefix(strings.ToUpper(name), "SIG"); name {
		case "EXIT", "0":
			theirs = append(theirs, s.exitTrap(hc, action, code))
			continue
		case "ERR":
			theirs = append(theirs, inner+"trap "+s.errTrap(hc, action, code)+" ERR")
			continue
		}
		sig, err := procs.ParseSignal(name)
		if err != nil || sig == 0 {
			fmt.Fprintf(hc.Stderr, "trap: %s is not a signal (trap -l lists them)\n", name)
			return []string{inner + "status", "1"}
		}
		s.setTrap(hc, sig, action, code)
	}
	if len(theirs) == 0 {
		return []string{inner + "status", "0"}
	}
	return []string{"eval", strings.Join(theirs, "; ")}
}

// exitTrap is the code that sets the trap on EXIT.
func (s *session) exitTrap(hc interp.HandlerContext, action, code string) string {
	if inSubshell(hc) {
		return keepTrap(code)
	}
	s.nameTrap(hc, "EXIT", action)
	return inner + "trap " + quote([]string{code}) + " EXIT"
}

// nameTrap notes a trap of the shell itself that is not on a signal.
func (s *session) nameTrap(hc interp.HandlerContext, name, action string) {
	if !s.isShell(hc) {
		return
	}
	s.traps.mu.Lock()
	defer s.traps.mu.Unlock()
	if delete(s.traps.named, name); action != "-" {
		s.traps.named[name] = action
	}
}

// setTrap sets the trap of a signal. What a subshell sets is as it was when that ends; what it does not want is left to
// the shell, which is sent the signal, too, and whose trap the subshell does not run.
func (s *session) setTrap(hc interp.HandlerContext, sig syscall.Signal, action, code string) {
	t := s.traps
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		t.begun = true
		go t.collect()
	}
	was, had := t.of[sig]
	by := below(hc)
	if by && action == "-" && had && !was.below && was.text != "" {
		return
	}
	if by {
		s.files.atEnd(hc, "trap "+sig.String(), func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.pending = slices.DeleteFunc(t.pending, func(p syscall.Signal) bool { return p == sig && t.of[sig].below })
			s.putTrap(sig, was, had)
		})
	}
	if sig == unix.SIGPIPE { // what another subshell has left, which has ended
		t.piped = false
		t.pending = slices.DeleteFunc(t.pending, func(sig syscall.Signal) bool { return sig == unix.SIGPIPE })
	}
	s.putTrap(sig, trap{action, code, by}, action != "-")
}

// putTrap makes a trap that of a signal, or has the kernel do what it does by itself. The lock is held.
func (s *session) putTrap(sig syscall.Signal, to trap, is bool) {
	t := s.traps
	delete(t.of, sig)
	switch {
	case !is:
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
	case to.text == "":
		t.of[sig] = to
		signal.Ignore(sig)
	default:
		t.of[sig] = to
		signal.Notify(t.came, sig)
		signal.Notify(t.bell, sig)
	}
}

// shellSignals are those that a shell on a terminal takes care of.
func shellSignals() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}
}

// showTraps prints the traps as the commands that set them; in a subshell that has none they are the shell's, as for
// trap | cat.
func (s *session) showTraps(hc interp.HandlerContext, args []string) {
	var b strings.Builder
	wanted := func(name string) bool {
		return len(args) < 2 || slices.Contains(args, name) || slices.Contains(args, "SIG"+name)
	}
	show := func(name, text string) {
		if wanted(name) {
			fmt.Fprintf(&b, "trap -- %s%s\n", quote([]string{text}), name)
		}
	}
	t := s.traps
	t.mu.Lock()
	if own := hc.Env.Get(exitTrap).String(); own != "" {
		show("EXIT", own)
	} else if text, ok := t.named["EXIT"]; ok {
		show("EXIT", text)
	}
	for _, sig := range slices.Sorted(maps.Keys(t.of)) {
		show(strings.TrimPrefix(unix.SignalName(sig), "SIG"), t.of[sig].text)
	}
	if text, ok := t.named["ERR"]; ok {
		show("ERR", text)
	}
	t.mu.Unlock()
	_, _ = io.WriteString(hc.Stdout, b.String()) // with the lock free: who reads it may need that first
}

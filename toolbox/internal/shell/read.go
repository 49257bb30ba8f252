// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// reading is what read is asked for, when that is more than the interpreter knows.
type reading struct {
	pass    []string // flags that it does know
	names   []string
	prompt  string
	timeout time.Duration // negative for none
	count   int           // of bytes; 0 for none
	whole   bool          // -N: the end of a line is a byte like others
	end     byte
	fd      string
	silent  bool
}

// forever is longer than anybody waits.
const forever = 100 * 365 * 24 * time.Hour

// parseRead reads the flags. special says that the interpreter's own read does not do.
func parseRead(args []string) (r reading, special bool, err error) {
	r = reading{timeout: -1, end: '\n'}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		letters := args[0][1:]
		args = args[1:]
		for letters != "" && letters != "-" {
			letter := letters[:1]
			letters = letters[1:]
			if strings.Contains("tnNdupi", letter) {
				if letters == "" {
					if len(args) == 0 {
						return r, true, fmt.Errorf("-%s needs a value", letter)
					}
					letters, args = args[0], args[1:]
				}
				if err := r.set(letter, letters); err != nil {
					return r, true, err
				}
				special = true
				break
			}
			switch letter {
			case "s":
				r.silent = true
			case "r", "a":
				r.pass = append(r.pass, "-"+letter)
			case "e":
			default:
				return r, true,
					fmt.Errorf("unknown flag -%s: -r -a -s -p PROMPT -t SECONDS -n BYTES -N BYTES -d END -u DESCRIPTOR",
						letter)
			}
		}
	}
	for _, name := range args {
		if base, _, _ := strings.Cut(name, "["); !syntax.ValidName(base) {
			return r, true, fmt.Errorf("%s is not a name for a variable", name)
		}
	}
	r.names = args
	return r, special, nil
}

func (r *reading) set(letter, value string) error {
	switch letter {
	case "t":
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil || !(seconds >= 0) { // nor nan
			return fmt.Errorf("-t %s is not a number of seconds", value)
		}
		r.timeout = time.Duration(min(seconds, forever.Seconds()) * float64(time.Second))
	case "n", "N":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("-%s %s is not a number of bytes", letter, value)
		}
		r.count, r.whole = n, letter == "N"
	case "d":
		if r.end = 0; value != "" {
			r.end = value[0]
		}
	case "u":
		r.fd = value
	case "p":
		r.prompt = value
	}
	return nil
}

// read reads what the interpreter's own read cannot, and lets that one make variables of it.
func (s *session) read(ctx context.Context, hc interp.HandlerContext, args []string) []string {
	r, special, err := parseRead(args)
	if err != nil {
		fmt.Fprintf(hc.Stderr, "read: %v\n", err)
		return []string{"eval", inner + "status 2"}
	}
	separators := blanks
	if v := hc.Env.Get("IFS"); v.IsSet() {
		separators = v.String()
	}
	onlyBlanks := strings.Trim(separators, blanks) == ""
	if !special && onlyBlanks && s.interactive == nil && !s.traps.any() { // which no signal ends while it waits
		return append([]string{"read"}, args...)
	}
	in, _ := hc.Stdin.(*os.File)
	if r.fd != "" {
		if in, err = s.files.duplicate(hc, r.fd); err != nil {
			fmt.Fprintf(hc.Stderr, "read: %v\n", err)
			return []string{"false"}
		}
		defer in.Close()
	}
	if in == nil {
		fmt.Fprintln(hc.Stderr, "read: there is no standard input")
		return []string{"false"}
	}
	if r.prompt != "" && terminal.Is(in) {
		fmt.Fprint(hc.Stderr, r.prompt)
	}
	ctx, stop := s.traps.until(ctx, below(hc))
	defer stop()
	data, code := r.line(ctx, in)
	return []string{"eval", fmt.Sprintf("%s; "+inner+"status %d", r.assignments(data, separators), code)}
}

// assignments is the code that sets the variables.
func (r *reading) assignments(data, separators string) string {
	raw := r.whole || slices.Contains(r.pass, "-r")
	if len(r.names) == 0 {
		r.names = []string{"REPLY"}
		separators = ""
	}
	if slices.Contains(r.pass, "-a") {
		return fmt.Sprintf("%s=(%s)", r.names[0], quote(splitRead(data, separators, raw, 0)))
	}
	if r.whole {
		separators = ""
	}
	fields := splitRead(data, separators, raw, len(r.names))
	var b strings.Builder
	for i, name := range r.names {
		value := ""
		if i < len(fields) {
			value = fields[i]
		}
		fmt.Fprintf(&b, "%s=%s", name, quote([]string{value}))
	}
	return b.String()
}

// line reads until there is enough. Code 1 is the end of the input, 142 that of the time.
func (r *reading) line(ctx context.Context, in *os.File) (string, int) {
	wake, ended, err := os.Pipe()
	if err != nil {
		return "", 1
	}
	defer wake.Close()
	defer ended.Close()
	defer context.AfterFunc(ctx, func() { ended.Close() })() // a closed pipe can be read
	restore := r.modes(in)
	defer restore()
	late := time.Now().Add(r.timeout)
	var data []byte
	for begun := false; ; begun = true {
		if begun && r.timeout > 0 && !time.Now().Before(late) { // also while there is ever more
			return string(data), 128 + int(unix.SIGALRM)
		}
		switch r.ready(in, wake, late) {
		case nothing:
			return string(data), 128 + int(unix.SIGALRM)
		case broken:
			return string(data), 1
		}
		if r.timeout == 0 {
			return "", 0 // there is something, and that was the question
		}
		var b [1]byte
		if n, err := in.Read(b[:]); n == 0 || err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return string(data), 1
		}
		if b[0] == r.end && !r.whole {
			if r.goesOn(data) {
				data = data[:len(data)-1]
				continue
			}
			return string(data), 0
		}
		if data = append(data, b[0]); len(data) == r.count {
			return string(data), 0
		}
	}
}

// goesOn tells whether a line is continued by the next one: a backslash stands before its end.
func (r *reading) goesOn(line []byte) bool {
	if r.end != '\n' || slices.Contains(r.pass, "-r") {
		return false
	}
	return (len(line)-len(bytes.TrimRight(line, `\`)))%2 == 1
}

// modes makes a terminal give single bytes, or not show them, where that is asked for.
func (r *reading) modes(in *os.File) (restore func()) {
	if r.count == 0 && !r.silent {
		return func() {}
	}
	old, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return func() {} // it is not a terminal
	}
	now := *old
	if r.count > 0 {
		now.Lflag &^= unix.ICANON
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	}
	if r.silent {
		now.Lflag &^= unix.ECHO
	}
	_ = unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, &now)
	return func() { _ = unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, old) }
}

// What there is to be read.
const (
	something = iota
	nothing   // and the time is over
	broken    // and the line is cancelled
)

// ready waits until there is something to be read, or it is too late.
func (r *reading) ready(in, wake *os.File, late time.Time) (what int) {
	raw, err := in.SyscallConn()
	if err != nil {
		return broken
	}
	other, err := wake.SyscallConn()
	if err != nil {
		return broken
	}
	look := func(a, b uintptr) {
		wait := -1
		if r.timeout >= 0 {
			wait = max(0, int((time.Until(late)+time.Millisecond-1)/time.Millisecond))
		}
		fds := []unix.PollFd{{Fd: int32(a), Events: unix.POLLIN}, {Fd: int32(b), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			what = -1
		case err != nil || fds[1].Revents != 0:
			what = broken
		case n == 0:
			what = nothing
		}
	}
	for what = -1; what < 0; {
		what = something
		if raw.Control(func(a uintptr) { _ = other.Control(func(b uintptr) { look(a, b) }) }) != nil {
			return broken
		}
	}
	return what
}

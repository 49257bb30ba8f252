// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// screen is the terminal while a command has all of it.
type screen struct {
	in            *os.File
	out           io.Writer
	rows, columns int
	restore       func()
	keys          chan key
	resized       chan os.Signal
}

// key is what was typed, or why nothing can be any more.
type key struct {
	rune
	err error
}

// openScreen takes the terminal: standard input, or the controlling one if input is a file to show.
func openScreen() (*screen, error) {
	s := &screen{in: os.Stdin, out: os.Stdout}
	if !terminal.Is(os.Stdin) {
		tty, err := os.Open("/dev/tty")
		if err != nil {
			tty = os.Stderr
		}
		s.in = tty
	}
	restore, err := terminal.Raw(s.in)
	if err != nil {
		return nil, fmt.Errorf("this needs a terminal: %w", err)
	}
	s.restore = restore
	s.resized = make(chan os.Signal, 1)
	signal.Notify(s.resized, unix.SIGWINCH)
	s.keys = make(chan key)
	go func() {
		keys := terminal.Keys{In: s.in}
		for {
			r, err := keys.Next()
			s.keys <- key{r, err}
			if err != nil {
				close(s.keys) // who was told in the middle of a command asks again
				return
			}
		}
	}()
	s.measure()
	fmt.Fprint(os.Stdout, "\x1b[?1049h")
	return s, nil
}

func (s *screen) measure() { s.rows, s.columns = terminal.Size(s.in) }

func (s *screen) close() {
	fmt.Fprint(os.Stdout, "\x1b[?1049l")
	s.restore()
}

// next waits for a key; a changed size is the key terminal.None.
func (s *screen) next() (rune, error) {
	select {
	case k, more := <-s.keys:
		if !more {
			return 0, io.EOF
		}
		return k.rune, k.err
	case <-s.resized:
		s.measure()
		return terminal.None, nil
	}
}

// cells turns a line into what is shown of it: tabs are widened, control characters are made visible.
func cells(line string, at int) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\t':
			n := 8 - at%8
			b.WriteString(strings.Repeat(" ", n))
			at += n
		case r < ' ':
			b.WriteByte('^')
			b.WriteRune(r + 64)
			at += 2
		case r == utf8.RuneError:
			b.WriteByte('?')
			at++
		default:
			b.WriteRune(r)
			at += terminal.RuneCells(r)
		}
	}
	return b.String()
}

// wrap cuts a shown line into rows.
func wrap(line string, columns int) []string {
	out, from, at := []string{}, 0, 0
	for i, r := range line {
		n := terminal.RuneCells(r)
		if at+n > columns {
			out = append(out, line[from:i])
			from, at = i, 0
		}
		at += n
	}
	return append(out, line[from:])
}

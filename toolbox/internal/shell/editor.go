// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// errInterrupted is Ctrl-C at the prompt.
var errInterrupted = errors.New("interrupted")

// editor reads lines from a terminal.
type editor struct {
	in       *os.File
	keys     terminal.Keys
	out      io.Writer
	tty      bool
	history  []string
	complete func(line string) (start int, choices []string)

	prompt string
	text   []rune
	at     int    // of the cursor in text
	row    int    // of the cursor below the prompt's first row
	cut    []rune // what Ctrl-K, Ctrl-U and Ctrl-W took
	place  int    // in the history
	draft  []rune // the new line while looking at old ones
	tabbed bool   // the last key was a tab
}

func newEditor(in *os.File, out io.Writer, complete func(string) (int, []string)) *editor {
	return &editor{in: in, keys: terminal.Keys{In: in, Alt: true}, out: out, tty: terminal.Is(in), complete: complete}
}

// remember adds a line to the history.
func (e *editor) remember(line string) {
	if n := len(e.history); strings.TrimSpace(line) == "" || n > 0 && e.history[n-1] == line {
		return
	}
	if e.history = append(e.history, line); len(e.history) > 1000 {
		e.history = e.history[1:]
	}
}

// read asks for a line. io.EOF is the end of input or Ctrl-D.
func (e *editor) read(prompt string) (string, error) {
	if !e.tty {
		fmt.Fprint(e.out, prompt)
		return e.plain()
	}
	restore, err := terminal.Raw(e.in)
	if err != nil {
		return "", err
	}
	defer restore()
	if at := strings.LastIndexByte(prompt, '\n'); at >= 0 {
		fmt.Fprint(e.out, prompt[:at+1])
		prompt = prompt[at+1:]
	}
	e.prompt, e.text, e.at, e.row, e.place, e.tabbed = prompt, nil, 0, 0, len(e.history), false
	fmt.Fprint(e.out, prompt)
	for {
		key, err := e.keys.Next()
		if err != nil {
			return "", err
		}
		line, done, err := e.handle(key)
		if done || err != nil {
			return line, err
		}
	}
}

// plain reads a line from something else than a terminal.
func (e *editor) plain() (string, error) {
	var line []byte
	for {
		b, err := terminal.Byte(e.in)
		if err == io.EOF && len(line) > 0 || b == '\n' && err == nil {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, b)
	}
}

// handle does what a key says.
func (e *editor) handle(key rune) (line string, done bool, err error) {
	tab := key == '\t'
	defer func() { e.tabbed = tab }()
	switch key {
	case '\r', '\n':
		e.move(len(e.text))
		fmt.Fprint(e.out, "\n")
		return string(e.text), true, nil
	case terminal.Ctrl('c'):
		e.move(len(e.text))
		fmt.Fprint(e.out, "^C\n")
		return "", true, errInterrupted
	case terminal.Ctrl('d'):
		if len(e.text) == 0 {
			return "", true, io.EOF
		}
		e.remove(e.at, e.at+1)
	case terminal.Ctrl('l'):
		fmt.Fprint(e.out, "\x1b[H\x1b[2J")
		e.row = 0
		e.draw()
	case terminal.Up, terminal.Ctrl('p'):
		e.recall(e.place - 1)
	case terminal.Down, terminal.Ctrl('n'):
		e.recall(e.place + 1)
	case terminal.Ctrl('r'):
		return e.search()
	case '\t':
		e.tab()
	default:
		if !e.motion(key) && !e.deletion(key) && key >= ' ' && key <= unicode.MaxRune {
			e.insert([]rune{key})
		}
	}
	return "", false, nil
}

// motion has the keys that move the cursor within the line; false if the key is none of them.
func (e *editor) motion(key rune) bool {
	switch key {
	case terminal.Left, terminal.Ctrl('b'):
		e.move(e.at - 1)
	case terminal.Right, terminal.Ctrl('f'):
		e.move(e.at + 1)
	case terminal.Home, terminal.Ctrl('a'):
		e.move(0)
	case terminal.End, terminal.Ctrl('e'):
		e.move(len(e.text))
	case terminal.WordLeft:
		e.move(e.wordLeft(false))
	case terminal.WordRight:
		e.move(e.wordRight())
	default:
		return false
	}
	return true
}

// deletion has the keys that take text away, and the one that puts it back; false if the key is none of them.
func (e *editor) deletion(key rune) bool {
	switch key {
	case terminal.Delete:
		e.remove(e.at, e.at+1)
	case 0x7f, 8:
		e.remove(e.at-1, e.at)
	case terminal.WordCut:
		e.take(e.at, e.wordRight())
	case terminal.WordBack:
		e.take(e.wordLeft(false), e.at)
	case terminal.Ctrl('w'):
		e.take(e.wordLeft(true), e.at)
	case terminal.Ctrl('k'):
		e.take(e.at, len(e.text))
	case terminal.Ctrl('u'):
		e.take(0, e.at)
	case terminal.Ctrl('y'):
		e.insert(e.cut)
	default:
		return false
	}
	return true
}

func (e *editor) insert(what []rune) {
	e.text = slices.Insert(e.text, e.at, what...)
	e.at += len(what)
	if e.at == len(e.text) && len(what) == 1 && e.width(string(e.text))%e.columns() != 0 {
		fmt.Fprint(e.out, string(what))
		return
	}
	e.draw()
}

func (e *editor) remove(from, to int) {
	if from < 0 || to > len(e.text) || from == to {
		return
	}
	e.text = slices.Delete(e.text, from, to)
	e.at = from
	e.draw()
}

func (e *editor) take(from, to int) {
	if from < to {
		e.cut = slices.Clone(e.text[from:to])
		e.remove(from, to)
	}
}

func (e *editor) move(to int) {
	if to >= 0 && to <= len(e.text) && to != e.at {
		e.at = to
		e.draw()
	}
}

// wordLeft is where the word before the cursor begins.
func (e *editor) wordLeft(blanks bool) int {
	in := func(r rune) bool {
		if blanks {
			return r != ' '
		}
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	at := e.at
	for at > 0 && !in(e.text[at-1]) {
		at--
	}
	for at > 0 && in(e.text[at-1]) {
		at--
	}
	return at
}

func (e *editor) wordRight() int {
	in := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	at := e.at
	for at < len(e.text) && !in(e.text[at]) {
		at++
	}
	for at < len(e.text) && in(e.text[at]) {
		at++
	}
	return at
}

// recall shows a line of the history.
func (e *editor) recall(place int) {
	if place < 0 || place > len(e.history) {
		return
	}
	if e.place == len(e.history) {
		e.draft = slices.Clone(e.text)
	}
	if e.place = place; place == len(e.history) {
		e.text = slices.Clone(e.draft)
	} else {
		e.text = []rune(e.history[place])
	}
	e.at = len(e.text)
	e.draw()
}

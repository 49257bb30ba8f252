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
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// errInterrupted is Ctrl-C at the prompt.
var errInterrupted = errors.New("interrupted")

// editor reads lines from a terminal.
type editor struct {
	in       *os.File
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
	return &editor{in: in, out: out, tty: terminal(int(in.Fd())), complete: complete}
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
	fd := int(e.in.Fd())
	cooked, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return "", err
	}
	raw := *cooked
	raw.Iflag &^= unix.IXON | unix.ICRNL | unix.INLCR | unix.ISTRIP
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	// The prompt is shown before the mode is changed, so that who sees it may be sure of nothing but that input is read.
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return "", err
	}
	defer func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, cooked) }()
	if at := strings.LastIndexByte(prompt, '\n'); at >= 0 {
		fmt.Fprint(e.out, strings.ReplaceAll(prompt[:at+1], "\n", "\r\n"))
		prompt = prompt[at+1:]
	}
	e.prompt, e.text, e.at, e.row, e.place, e.tabbed = prompt, nil, 0, 0, len(e.history), false
	fmt.Fprint(e.out, prompt)
	for {
		key, err := e.key()
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
		b, err := e.byte()
		if err == io.EOF && len(line) > 0 || b == '\n' && err == nil {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		line = append(line, b)
	}
}

func (e *editor) byte() (byte, error) {
	var b [1]byte
	for {
		n, err := e.in.Read(b[:])
		if n == 1 {
			return b[0], nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EIO) { // the terminal is gone
			err = io.EOF
		}
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}
}

// Keys that are no characters.
const (
	keyUp rune = unicode.MaxRune + 1 + iota
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyDelete
	keyWordLeft
	keyWordRight
	keyWordCut
	keyWordBack
	keyNone
)

// key reads a key: a character or an escape sequence.
func (e *editor) key() (rune, error) {
	b, err := e.byte()
	if err != nil {
		return 0, err
	}
	if b == 0x1b {
		return e.escape()
	}
	if b < utf8.RuneSelf {
		return rune(b), nil
	}
	buf := []byte{b}
	for !utf8.FullRune(buf) && len(buf) < utf8.UTFMax {
		if b, err = e.byte(); err != nil {
			return 0, err
		}
		buf = append(buf, b)
	}
	r, _ := utf8.DecodeRune(buf)
	return r, nil
}

func (e *editor) escape() (rune, error) {
	b, err := e.byte()
	if err != nil {
		return 0, err
	}
	switch b {
	case 'b':
		return keyWordLeft, nil
	case 'f':
		return keyWordRight, nil
	case 'd':
		return keyWordCut, nil
	case 0x7f, 8:
		return keyWordBack, nil
	case '[', 'O':
	default:
		return keyNone, nil
	}
	var seq []byte
	for {
		if b, err = e.byte(); err != nil {
			return 0, err
		}
		if seq = append(seq, b); b >= 0x40 && b <= 0x7e {
			break
		}
	}
	if key, ok := map[string]rune{
		"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd, "1~": keyHome, "7~": keyHome, "4~": keyEnd, "8~": keyEnd,
		"3~": keyDelete, "1;5D": keyWordLeft, "1;5C": keyWordRight, "1;3D": keyWordLeft, "1;3C": keyWordRight, "5D": keyWordLeft, "5C": keyWordRight,
	}[string(seq)]; ok {
		return key, nil
	}
	return keyNone, nil
}

func ctrl(letter rune) rune { return letter & 0x1f }

// handle does what a key says.
func (e *editor) handle(key rune) (line string, done bool, err error) {
	tab := key == '\t'
	defer func() { e.tabbed = tab }()
	switch key {
	case '\r', '\n':
		e.move(len(e.text))
		fmt.Fprint(e.out, "\r\n")
		return string(e.text), true, nil
	case ctrl('c'):
		e.move(len(e.text))
		fmt.Fprint(e.out, "^C\r\n")
		return "", true, errInterrupted
	case ctrl('d'):
		if len(e.text) == 0 {
			return "", true, io.EOF
		}
		e.remove(e.at, e.at+1)
	case keyDelete:
		e.remove(e.at, e.at+1)
	case 0x7f, 8:
		e.remove(e.at-1, e.at)
	case keyLeft, ctrl('b'):
		e.move(e.at - 1)
	case keyRight, ctrl('f'):
		e.move(e.at + 1)
	case keyHome, ctrl('a'):
		e.move(0)
	case keyEnd, ctrl('e'):
		e.move(len(e.text))
	case keyWordLeft:
		e.move(e.wordLeft(false))
	case keyWordRight:
		e.move(e.wordRight())
	case keyWordCut:
		e.take(e.at, e.wordRight())
	case keyWordBack:
		e.take(e.wordLeft(false), e.at)
	case ctrl('w'):
		e.take(e.wordLeft(true), e.at)
	case ctrl('k'):
		e.take(e.at, len(e.text))
	case ctrl('u'):
		e.take(0, e.at)
	case ctrl('y'):
		e.insert(e.cut)
	case ctrl('l'):
		fmt.Fprint(e.out, "\x1b[H\x1b[2J")
		e.row = 0
		e.draw()
	case keyUp, ctrl('p'):
		e.recall(e.place - 1)
	case keyDown, ctrl('n'):
		e.recall(e.place + 1)
	case ctrl('r'):
		return e.search()
	case '\t':
		e.tab()
	default:
		if key >= ' ' && key <= unicode.MaxRune {
			e.insert([]rune{key})
		}
	}
	return "", false, nil
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

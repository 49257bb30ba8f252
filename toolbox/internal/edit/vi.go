// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

const viHelp = `move: h j k l, arrows, w b e, 0 ^ $, gg G NG, Ctrl-F Ctrl-B, /RE ?RE n N, f F t T, %, { }
insert: i a I A o O, Esc ends; change: x X r J ~ D C s S cc cw dd dw d$ yy yw p P . u Ctrl-R, all with counts
:w [FILE] :q :q! :wq :x ZZ :e FILE :r FILE :N :[RANGE]s/RE/TEXT/[g] :[RANGE]d :set nu|nonu  range: N,M % . $`

// place is a position in the text.
type place struct{ row, col int }

// state is what undo brings back.
type state struct {
	lines [][]rune
	at    place
}

// vim is one run of vi.
type vim struct {
	*screen
	name    string
	lines   [][]rune
	at      place
	top     int
	want    int // the column to keep to when moving up and down
	number  bool
	insert  bool
	dirty   bool
	empty   bool // the file was, or all lines were cut
	noEnd   bool // the file had no line end at its end
	message string
	undo    []state
	redo    []state
	yank    [][]rune
	whole   bool // what was taken are whole lines
	search  *regexp.Regexp
	back    bool
	sought  rune // f, F, t or T, and what for
	target  rune
	typed   []rune // keys of the change under way
	last    []rune // keys of the last change, for .
	feed    []rune // keys that come before typed ones
	quit    bool
	files   []string
	read    func(name string) ([]byte, error)
	store   func(name, text string) error
}

func vi(c *applet.Call) error {
	line := ""
	c.Args = slices.DeleteFunc(c.Args, func(a string) bool {
		if strings.HasPrefix(a, "+") {
			line = a[1:]
			return true
		}
		return false
	})
	commands := c.Strings("c", "COMMAND", "run a command first, as :COMMAND; with :wq at the end no terminal is needed")
	c.Bool("R", "does nothing: a file is only written when one says so")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	v := &vim{files: c.Args, read: os.ReadFile, store: writeFile}
	if len(c.Args) > 0 {
		v.name, v.files = c.Args[0], c.Args[1:]
	}
	if err := v.load(v.name); err != nil {
		return err
	}
	if n, err := strconv.Atoi(line); err == nil {
		v.at.row = max(0, min(n, len(v.lines))-1)
	} else if strings.HasPrefix(line, "/") {
		v.search, _ = regexp.Compile(line[1:])
		v.find(false)
	}
	for _, line := range *commands {
		if v.command(strings.TrimPrefix(line, ":")); v.quit {
			return nil
		}
	}
	var err error
	if v.screen, err = openScreen(); err != nil {
		return err
	}
	defer v.close()
	for !v.quit {
		v.draw()
		k, err := v.key()
		if err != nil {
			return errors.New("the terminal is gone; nothing was written")
		}
		v.message = ""
		v.normal(k)
	}
	return nil
}

// load reads a file into the buffer; one that is not there is empty.
func (v *vim) load(name string) error {
	v.lines, v.at, v.top, v.undo, v.redo, v.dirty, v.empty, v.noEnd = [][]rune{{}}, place{}, 0, nil, nil, false, true,
		false
	if name == "" {
		return nil
	}
	text, err := v.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		v.message = fmt.Sprintf("%q is new", name)
		return nil
	}
	if err != nil {
		return err
	}
	v.empty = len(text) == 0
	v.noEnd = len(text) > 0 && text[len(text)-1] != '\n'
	v.lines = split(string(text))
	v.message = fmt.Sprintf("%q %d lines, %d bytes", name, len(v.lines), len(text))
	return nil
}

func split(text string) [][]rune {
	var out [][]rune
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		out = append(out, raw(l))
	}
	return out
}

// Bytes that are no text are kept as characters beyond Unicode's, so that a file comes out as it went in.
const rawByte rune = 0x110100

func raw(l string) []rune {
	out := make([]rune, 0, len(l))
	for i, r := range l {
		if r == '\uFFFD' && !strings.HasPrefix(l[i:], "\uFFFD") {
			r = rawByte + rune(l[i])
		}
		out = append(out, r)
	}
	return out
}

func unraw(l []rune) string {
	var b strings.Builder
	for _, r := range l {
		if r >= rawByte {
			b.WriteByte(byte(r - rawByte))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// save writes lines to a file.
func (v *vim) save(name string, lines [][]rune) error {
	var b strings.Builder
	for i, l := range lines {
		b.WriteString(unraw(l))
		if i < len(lines)-1 || !v.noEnd {
			b.WriteByte('\n')
		}
	}
	if v.empty && len(lines) == 1 && len(lines[0]) == 0 {
		b.Reset()
	}
	if err := v.store(name, b.String()); err != nil {
		return err
	}
	v.message = fmt.Sprintf("%q %d lines, %d bytes written", name, len(lines), b.Len())
	return nil
}

// writeFile keeps mode, owner, links and mounts: it writes into the file that is there, after a copy of the old content
// was put beside it, which goes when all is written.
func writeFile(name, text string) error {
	backup := name + "~wherry"
	old, err := os.ReadFile(name)
	kept := err == nil && len(old) > 0 && os.WriteFile(backup, old, 0o600) == nil
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		if kept {
			_ = os.Remove(backup)
		}
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		if kept {
			return fmt.Errorf("%w; what was in it is in %s", err, backup)
		}
		return err
	}
	if kept {
		return os.Remove(backup)
	}
	return nil
}

// key takes the next key, those of a repeated change first.
func (v *vim) key() (rune, error) {
	if len(v.feed) > 0 {
		k := v.feed[0]
		v.feed = v.feed[1:]
		return k, nil
	}
	for {
		k, err := v.next()
		if err == nil && k == terminal.None {
			v.draw()
			continue
		}
		if err == nil {
			v.typed = append(v.typed, k)
		}
		return k, err
	}
}

func (v *vim) line() []rune { return v.lines[v.at.row] }

// fix keeps the cursor on the text.
func (v *vim) fix() {
	v.at.row = max(0, min(v.at.row, len(v.lines)-1))
	last := len(v.line())
	if !v.insert {
		last = max(0, last-1)
	}
	v.at.col = max(0, min(v.at.col, last))
}

// remember keeps the text for undo, before a change.
func (v *vim) remember() {
	v.undo = append(v.undo, state{slices.Clone(v.lines), v.at})
	if len(v.undo) > 200 {
		v.undo = v.undo[1:]
	}
	v.redo, v.dirty = nil, true
}

// swap goes to the state on top of one stack and puts the present one on the other.
func (v *vim) swap(from, to *[]state) {
	if len(*from) == 0 {
		v.message = "nothing more"
		return
	}
	*to = append(*to, state{v.lines, v.at})
	s := (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	v.lines, v.at, v.dirty = s.lines, s.at, true
	v.fix()
}

// set replaces a row. Rows are shared with the states of undo, so they are never changed in place.
func (v *vim) set(row int, line []rune) { v.lines[row] = line }

func (v *vim) draw() { fmt.Fprint(v.out, v.frame()) }

// gutter is how many columns the line numbers take; none where little room would be left for the text.
func (v *vim) gutter() int {
	const numbers = 7
	if v.number && v.columns > 2*numbers {
		return numbers
	}
	return 0
}

// frame is what the whole screen shows.
func (v *vim) frame() string {
	v.fix()
	page := v.rows - 1
	if v.at.row < v.top {
		v.top = v.at.row
	}
	margin := v.gutter()
	show := func(row int) []string { return wrap(cells(unraw(v.lines[row]), 0), v.columns-margin) }
	height := func() int {
		n := 0
		for r := v.top; r <= v.at.row; r++ {
			n += len(show(r))
		}
		return n
	}
	if v.at.row-v.top > page {
		v.top = v.at.row - page
	}
	for v.top < v.at.row && height() > page {
		v.top++
	}
	var b strings.Builder
	b.WriteString("\x1b[?25l\x1b[H\x1b[J")
	used, cursor := 0, ""
	for r := v.top; r < len(v.lines) && used < page; r++ {
		if r == v.at.row {
			before := terminal.Cells(cells(unraw(v.line()[:v.at.col]), 0))
			width := v.columns - margin
			cursor = fmt.Sprintf("\x1b[%d;%dH", used+1+before/width, margin+1+before%width)
		}
		for i, row := range show(r) {
			if used++; used > page {
				break
			}
			if margin > 0 && i == 0 {
				fmt.Fprintf(&b, "%6d ", r+1)
			} else if margin > 0 {
				b.WriteString("       ")
			}
			b.WriteString(row + "\r\n")
		}
	}
	for ; used < page; used++ {
		b.WriteString("~\r\n")
	}
	status := v.message
	if status == "" && v.insert {
		status = "-- INSERT --"
	}
	if status == "" {
		mark := ""
		if v.dirty {
			mark = " [changed]"
		}
		status = fmt.Sprintf("%s%s  %d,%d of %d", v.name, mark, v.at.row+1, v.at.col+1, len(v.lines))
	}
	return fmt.Sprintf("%s\x1b[%d;1H%s%s\x1b[?25h", b.String(), v.rows-strings.Count(status, "\n"),
		strings.ReplaceAll(status, "\n", "\r\n"), cursor)
}

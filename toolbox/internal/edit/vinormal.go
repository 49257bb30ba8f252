// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"
	"unicode"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// mostTimes bounds a count.
const mostTimes = 1 << 20

// normal does what a key says outside of insertion.
func (v *vim) normal(k rune) {
	fed := len(v.feed) > 0
	if !fed {
		v.typed = []rune{k}
	}
	k, n, given, err := v.count(k)
	if err != nil {
		return
	}
	count := max(n, 1)
	switch k {
	case ':':
		if text, ok := v.ask(":"); ok {
			v.command(text)
		}
	case 'u':
		v.swap(&v.undo, &v.redo)
	case terminal.Ctrl('r'):
		v.swap(&v.redo, &v.undo)
	case '.':
		v.again()
	case 'Z':
		if k, err := v.key(); err == nil && k == 'Z' {
			v.command("x")
		} else if err == nil && k == 'Q' {
			v.quit = true
		}
	case terminal.Ctrl('l'), terminal.Escape, terminal.None:
	case 'y':
		v.operate('y', count, given)
	default:
		if v.change(k, count, given) {
			if !fed {
				v.last = slices.Clone(v.typed)
			}
			return
		}
		m := v.move(k, count, given)
		if !m.ok {
			return
		}
		v.at = m.to
		if !strings.ContainsRune("jk", k) && k != terminal.Up && k != terminal.Down {
			v.want = v.at.col
			if k == '$' {
				v.want = 1 << 30
			}
		}
	}
}

// count reads the number that begins with a key, if one does, and the key behind it.
func (v *vim) count(first rune) (k rune, n int, given bool, err error) {
	for k = first; k >= '1' && k <= '9' || k == '0' && given; {
		n, given = min(n*10+int(k-'0'), mostTimes), true
		if k, err = v.key(); err != nil {
			return 0, 0, false, err
		}
	}
	return k, n, given, nil
}

// again repeats the last change.
func (v *vim) again() {
	if len(v.last) == 0 {
		return
	}
	v.feed = slices.Clone(v.last)
	k := v.feed[0]
	v.feed = append(v.feed[1:], terminal.None) // so that it knows it is fed
	v.normal(k)
	v.feed = nil
}

// change runs the commands that change text; false if the key is none of them.
func (v *vim) change(k rune, n int, given bool) bool {
	switch k {
	case 'i', 'a', 'I', 'A', 'o', 'O':
		v.remember()
		v.open(k)
		v.inserting()
	case 'x', terminal.Delete:
		if to := min(v.at.col+n, len(v.line())); to > v.at.col {
			v.remember()
			v.cut(v.at, place{v.at.row, to}, false)
		}
	case 'X':
		if from := max(0, v.at.col-n); from < v.at.col {
			v.remember()
			v.cut(place{v.at.row, from}, v.at, false)
		}
	case 'D', 'C':
		v.remember()
		v.cut(v.at, place{v.at.row, len(v.line())}, false)
		if k == 'C' {
			v.inserting()
		}
	case 's':
		v.remember()
		v.cut(v.at, place{v.at.row, min(v.at.col+n, len(v.line()))}, false)
		v.inserting()
	case 'S':
		v.feed = append([]rune{'c'}, v.feed...)
		v.operate('c', n, given)
	case 'r':
		v.replace(n)
	case '~':
		v.toggleCase(n)
	case 'J':
		v.remember()
		for range max(1, n-1) {
			v.join()
		}
	case 'p', 'P':
		v.put(k == 'P', n)
	case 'd', 'c', '>', '<':
		v.operate(k, n, given)
	case 'Y':
		v.feed = append([]rune{'y'}, v.feed...)
		v.operate('y', n, given)
	default:
		return false
	}
	return true
}

// replace is r: the key that follows stands in the place of n characters.
func (v *vim) replace(n int) {
	r, err := v.key()
	if err != nil || r >= terminal.Up || v.at.col+n > len(v.line()) {
		return
	}
	v.remember()
	if r == '\r' || r == '\n' { // one line end in the place of all that it replaces
		v.cut(v.at, place{v.at.row, v.at.col + n}, false)
		v.text([][]rune{{}, {}})
		return
	}
	line := slices.Clone(v.line())
	for i := range n {
		line[v.at.col+i] = r
	}
	v.set(v.at.row, line)
	v.at.col += n - 1
}

// toggleCase is ~.
func (v *vim) toggleCase(n int) {
	v.remember()
	line := slices.Clone(v.line())
	for range n {
		if v.at.col < len(line) {
			r := line[v.at.col]
			if line[v.at.col] = unicode.ToUpper(r); line[v.at.col] == r {
				line[v.at.col] = unicode.ToLower(r)
			}
			v.at.col++
		}
	}
	v.set(v.at.row, line)
}

func (v *vim) join() {
	if v.at.row+1 >= len(v.lines) {
		return
	}
	left, right := slices.Clone(v.line()), v.lines[v.at.row+1]
	for len(right) > 0 && (right[0] == ' ' || right[0] == '\t') {
		right = right[1:]
	}
	v.at.col = len(left)
	if len(left) > 0 && len(right) > 0 && left[len(left)-1] != ' ' {
		left = append(left, ' ')
	}
	v.set(v.at.row, append(left, right...))
	v.lines = slices.Delete(slices.Clone(v.lines), v.at.row+1, v.at.row+2)
}

// copy takes text for p.
func (v *vim) copy(from, to place, lines bool) {
	v.whole, v.yank = lines, nil
	for r := from.row; r <= to.row; r++ {
		line := v.lines[r]
		if !lines {
			a, b := 0, len(line)
			if r == from.row {
				a = min(from.col, len(line))
			}
			if r == to.row {
				b = min(to.col, len(line))
			}
			line = line[a:max(a, b)]
		}
		v.yank = append(v.yank, slices.Clone(line))
	}
}

// cut takes text away, for p.
func (v *vim) cut(from, to place, lines bool) {
	v.copy(from, to, lines)
	if lines {
		v.lines = slices.Delete(slices.Clone(v.lines), from.row, to.row+1)
		if len(v.lines) == 0 {
			v.lines, v.empty = [][]rune{{}}, true
		}
		v.at = place{from.row, 0}
		v.fix()
		return
	}
	joined := slices.Concat(v.lines[from.row][:from.col], v.lines[to.row][min(to.col, len(v.lines[to.row])):])
	v.lines = slices.Replace(slices.Clone(v.lines), from.row, to.row+1, joined)
	v.at = from
}

// open makes ready for inserting at the place that i, a, I, A, o or O means.
func (v *vim) open(k rune) {
	switch k {
	case 'a':
		v.at.col = min(v.at.col+1, len(v.line()))
	case 'I':
		v.at.col = v.move('^', 1, false).to.col
	case 'A':
		v.at.col = len(v.line())
	case 'o':
		v.lines = slices.Insert(slices.Clone(v.lines), v.at.row+1, []rune{})
		v.at = place{v.at.row + 1, 0}
	case 'O':
		v.lines = slices.Insert(slices.Clone(v.lines), v.at.row, []rune{})
		v.at.col = 0
	}
}

// inserting takes text until Escape.
func (v *vim) inserting() {
	v.insert = true
	v.lines = slices.Clone(v.lines)
	defer func() {
		v.insert = false
		v.at.col = max(0, v.at.col-1)
		v.want = v.at.col
	}()
	for {
		if len(v.feed) == 0 {
			v.draw()
		}
		k, err := v.key()
		switch {
		case err != nil, k == terminal.Escape, k == terminal.Ctrl('c'), k == terminal.None:
			return
		case k == '\r' || k == '\n':
			v.text([][]rune{{}, {}})
		case k == 0x7f || k == 8:
			v.rubout()
		case k == terminal.Ctrl('w'):
			to := v.at
			v.at = v.word(v.at, 'b')
			if v.at.row != to.row {
				v.at = place{to.row, 0}
			}
			v.set(to.row, slices.Concat(v.line()[:v.at.col], v.line()[to.col:]))
		case k == terminal.Ctrl('u'):
			v.set(v.at.row, slices.Clone(v.line()[v.at.col:]))
			v.at.col = 0
		case k == terminal.Delete:
			if v.at.col < len(v.line()) {
				v.set(v.at.row, slices.Concat(v.line()[:v.at.col], v.line()[v.at.col+1:]))
			}
		case k >= terminal.Up:
			if m := v.move(k, 1, false); m.ok {
				v.at = m.to
			}
		case k >= ' ' || k == '\t':
			v.text([][]rune{{k}})
		}
	}
}

func (v *vim) rubout() {
	switch {
	case v.at.col > 0:
		v.set(v.at.row, slices.Concat(v.line()[:v.at.col-1], v.line()[v.at.col:]))
		v.at.col--
	case v.at.row > 0:
		above := v.lines[v.at.row-1]
		joined := slices.Concat(above, v.line())
		v.lines = slices.Replace(slices.Clone(v.lines), v.at.row-1, v.at.row+1, joined)
		v.at = place{v.at.row - 1, len(above)}
	}
}

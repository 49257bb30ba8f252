// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// motion is where a key leads.
type motion struct {
	to        place
	lines     bool // an operator takes whole lines
	inclusive bool // an operator takes the character at the end too
	ok        bool
}

// move finds out where a key leads; given says that a count was typed.
func (v *vim) move(k rune, n int, given bool) motion {
	switch k {
	case 'f', 'F', 't', 'T', ';', ',':
		return v.seek(k, n)
	case '/', '?', 'n', 'N':
		return v.searchKey(k)
	}
	m := v.moveByLines(k, n, given)
	if !m.lines {
		m = v.moveByCharacters(k, n)
	}
	m.to.row = max(0, min(m.to.row, len(v.lines)-1))
	m.to.col = max(0, min(m.to.col, len(v.lines[m.to.row])))
	if k == '$' {
		m.to.col = max(0, len(v.lines[m.to.row])-1)
	}
	return m
}

// moveByLines has the keys after which an operator takes whole lines; without lines, it is none of them. What it
// returns may lie outside of the text.
func (v *vim) moveByLines(k rune, n int, given bool) motion {
	m := motion{to: v.at, lines: true, ok: true}
	switch k {
	case 'j', terminal.Down, terminal.Ctrl('n'):
		m.to, m.ok = place{v.at.row + n, v.want}, v.at.row+1 < len(v.lines)
	case 'k', terminal.Up, terminal.Ctrl('p'):
		m.to, m.ok = place{v.at.row - n, v.want}, v.at.row > 0
	case '+', '\r', '\n':
		m.to, m.ok = place{v.at.row + n, 0}, v.at.row+1 < len(v.lines)
	case '-':
		m.to, m.ok = place{v.at.row - n, 0}, v.at.row > 0
	case 'G':
		m.to.row = len(v.lines) - 1
		if given {
			m.to.row = n - 1
		}
	case 'g':
		k, err := v.key()
		m.to.row, m.ok = 0, err == nil && k == 'g'
		if given {
			m.to.row = n - 1
		}
	case 'H':
		m.to.row = v.top
	case terminal.Ctrl('f'), terminal.PageDown:
		m.to.row = v.at.row + n*(v.rows-2)
		v.top = min(v.top+n*(v.rows-2), len(v.lines)-1)
	case terminal.Ctrl('b'), terminal.PageUp:
		m.to.row = v.at.row - n*(v.rows-2)
		v.top = max(0, v.top-n*(v.rows-2))
	case terminal.Ctrl('d'):
		m.to.row = v.at.row + v.rows/2
	case terminal.Ctrl('u'):
		m.to.row = v.at.row - v.rows/2
	default:
		m.lines = false
	}
	return m
}

// moveByCharacters has the keys after which an operator takes what lies between two characters. What it returns may
// lie outside of the text.
func (v *vim) moveByCharacters(k rune, n int) motion {
	m := motion{to: v.at, ok: true}
	switch k {
	case 'h', terminal.Left, 8, 0x7f:
		m.to.col = max(0, m.to.col-n)
	case 'l', terminal.Right, ' ':
		m.to.col = min(len(v.line()), m.to.col+n)
	case '0', terminal.Home:
		m.to.col = 0
	case '^':
		m.to.col = len(v.line()) - len([]rune(strings.TrimLeft(string(v.line()), " \t")))
	case '$', terminal.End:
		m.to = place{v.at.row + n - 1, 1 << 30}
		m.inclusive = true
	case 'w', 'W', 'b', 'B', 'e', 'E':
		for range n {
			next := v.word(m.to, k)
			if next == m.to { // the text's end
				break
			}
			m.to = next
		}
		m.inclusive = k == 'e' || k == 'E'
	case '{', '}':
		m.to = v.paragraph(k == '}', n)
	case '%':
		m.to, m.ok = v.pair()
		m.inclusive = true
	default:
		m.ok = false
	}
	return m
}

// class tells kinds of characters apart: blanks, those of words, others.
func class(r rune, big bool) int {
	switch {
	case unicode.IsSpace(r):
		return 0
	case big || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return 1
	}
	return 2
}

// at is the character at a place; a line's end is a blank.
func (v *vim) char(p place) rune {
	if p.col < len(v.lines[p.row]) {
		return v.lines[p.row][p.col]
	}
	return '\n'
}

// step goes to the next or the former place, over line ends.
func (v *vim) step(p place, by int) (place, bool) {
	p.col += by
	if p.col < 0 {
		if p.row == 0 {
			return place{}, false
		}
		return place{p.row - 1, len(v.lines[p.row-1])}, true
	}
	if p.col > len(v.lines[p.row]) {
		if p.row+1 == len(v.lines) {
			return place{p.row, len(v.lines[p.row])}, false
		}
		return place{p.row + 1, 0}, true
	}
	return p, true
}

// word goes by words: w, b or e.
func (v *vim) word(p place, k rune) place {
	big := unicode.IsUpper(k)
	kind := func(p place) int { return class(v.char(p), big) }
	by := 1
	if unicode.ToLower(k) == 'b' {
		by = -1
	}
	ok := true
	if unicode.ToLower(k) == 'w' {
		for was := kind(p); ok && was != 0 && kind(p) == was; {
			p, ok = v.step(p, 1)
		}
		for ok && kind(p) == 0 && (p.col > 0 || len(v.lines[p.row]) > 0) {
			p, ok = v.step(p, 1)
		}
		return p
	}
	next, ok := v.step(p, by)
	for ok && kind(next) == 0 {
		next, ok = v.step(next, by)
	}
	if !ok {
		return next
	}
	p = next
	for was := kind(p); ; p = next {
		if next, ok = v.step(p, by); !ok || kind(next) != was {
			return p
		}
	}
}

func (v *vim) paragraph(down bool, n int) place {
	row := v.at.row
	by := -1
	if down {
		by = 1
	}
	for range min(n, len(v.lines)) {
		for row += by; row > 0 && row < len(v.lines)-1 && len(v.lines[row]) > 0; {
			row += by
		}
	}
	return place{row, 0}
}

// pair finds the other bracket.
func (v *vim) pair() (place, bool) {
	const open, shut = "([{", ")]}"
	p := v.at
	for p.col < len(v.line()) && !strings.ContainsRune(open+shut, v.char(p)) {
		p.col++
	}
	here := v.char(p)
	by, other := 1, ' '
	if i := strings.IndexRune(open, here); i >= 0 {
		other = rune(shut[i])
	} else if i := strings.IndexRune(shut, here); i >= 0 {
		by, other = -1, rune(open[i])
	} else {
		return v.at, false
	}
	depth := 0
	for ok := true; ok; p, ok = v.step(p, by) {
		switch v.char(p) {
		case here:
			depth++
		case other:
			if depth--; depth == 0 {
				return p, true
			}
		}
	}
	return v.at, false
}

// seek goes to a character of the line.
func (v *vim) seek(k rune, n int) motion {
	switch k {
	case ';':
		k = v.sought
	case ',':
		k = map[rune]rune{'f': 'F', 'F': 'f', 't': 'T', 'T': 't'}[v.sought]
	default:
		r, err := v.key()
		if err != nil {
			return motion{}
		}
		v.sought, v.target = k, r
	}
	by := 1
	if k == 'F' || k == 'T' {
		by = -1
	}
	col := v.at.col
	for range min(n, len(v.line())+1) {
		for col += by; col >= 0 && col < len(v.line()) && v.line()[col] != v.target; {
			col += by
		}
	}
	if k == 0 || col < 0 || col >= len(v.line()) {
		return motion{}
	}
	if k == 't' || k == 'T' {
		col -= by
	}
	return motion{to: place{v.at.row, col}, inclusive: by > 0, ok: true}
}

func (v *vim) searchKey(k rune) motion {
	back := v.back
	switch k {
	case 'N':
		back = !back
	case '/', '?':
		text, ok := v.ask(string(k))
		if !ok {
			return motion{}
		}
		if text != "" {
			re, err := regexp.Compile(text)
			if err != nil {
				v.message = err.Error()
				return motion{}
			}
			v.search = re
		}
		v.back = k == '?'
		back = v.back
	}
	was := v.at
	found := v.find(back)
	to := v.at
	v.at = was
	return motion{to: to, ok: found}
}

// find goes to the next match, round the end.
func (v *vim) find(back bool) bool {
	if v.search == nil {
		return false
	}
	n := len(v.lines)
	for i := 0; i <= n; i++ {
		row := (v.at.row + i) % n
		if back {
			row = (v.at.row - i + n) % n
		}
		text := unraw(v.lines[row])
		best := -1
		for _, m := range v.search.FindAllStringIndex(text, -1) {
			col := len([]rune(text[:m[0]]))
			same := i == 0
			switch {
			case !back && (!same || col > v.at.col):
				if best < 0 {
					best = col
				}
			case back && (!same || col < v.at.col):
				best = col
			}
		}
		if best >= 0 {
			v.at = place{row, best}
			return true
		}
	}
	v.message = "not found"
	return false
}

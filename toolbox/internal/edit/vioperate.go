// SPDX-License-Identifier: Apache-2.0

package edit

import "slices"

// operate is d, c, y, > or < with the motion, or the same key, that follows.
func (v *vim) operate(op rune, n int, given bool) {
	k, err := v.key()
	if err != nil {
		return
	}
	k, more, again, err := v.count(k)
	if err != nil {
		return
	}
	if again {
		n, given = min(n*more, mostTimes), true
	}
	from, m := v.at, v.operand(op, k, n, given)
	if !m.ok {
		return
	}
	to := m.to
	if to.row < from.row || to.row == from.row && to.col < from.col {
		from, to = to, from
	}
	if m.inclusive && !m.lines {
		to.col = min(to.col+1, len(v.lines[to.row]))
	}
	v.apply(op, from, to, m.lines)
}

// operand is how far an operator reaches.
func (v *vim) operand(op, k rune, n int, given bool) motion {
	switch {
	case k == op:
		return motion{to: place{min(v.at.row+n, len(v.lines)) - 1, 0}, lines: true, ok: true}
	case op == 'c' && (k == 'w' || k == 'W') && class(v.char(v.at), k == 'W') != 0:
		from, m := v.at, v.move(k+'e'-'w', n, given) // cw leaves the blanks behind the word
		if class(v.char(place{from.row, from.col + 1}), k == 'W') != class(v.char(from), k == 'W') && n == 1 {
			m.to = from // a word of one letter
		}
		return m
	}
	m := v.move(k, n, given)
	if (k == 'w' || k == 'W') && m.to.row > v.at.row { // not over the line's end
		m.to = place{v.at.row, len(v.line())}
	}
	return m
}

// apply does what an operator does with a part of the text.
func (v *vim) apply(op rune, from, to place, lines bool) {
	if op == 'y' {
		v.copy(from, to, lines)
		if !lines {
			v.at = from
		} else {
			v.at.row = from.row
		}
		return
	}
	v.remember()
	switch op {
	case '>', '<':
		v.shift(from.row, to.row, op == '>')
	case 'c':
		if lines {
			v.copy(from, to, true)
			v.lines = slices.Replace(slices.Clone(v.lines), from.row, to.row+1, []rune{})
			v.at = place{from.row, 0}
		} else {
			v.cut(from, to, false)
		}
		v.inserting()
	default:
		v.cut(from, to, lines)
	}
}

func (v *vim) shift(from, to int, right bool) {
	for r := from; r <= to; r++ {
		line := v.lines[r]
		switch {
		case right && len(line) > 0:
			line = append([]rune{'\t'}, line...)
		case !right && len(line) > 0 && line[0] == '\t':
			line = slices.Clone(line[1:])
		case !right:
			n := 0
			for n < min(8, len(line)) && line[n] == ' ' {
				n++
			}
			line = slices.Clone(line[n:])
		}
		v.set(r, line)
	}
	v.at = place{from, 0}
}

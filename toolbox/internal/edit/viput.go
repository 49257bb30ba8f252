// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"slices"
)

// put is p and P.
func (v *vim) put(before bool, n int) {
	if len(v.yank) == 0 {
		return
	}
	v.remember()
	rows := v.repeated(n)
	if v.whole {
		row := v.at.row + 1
		if before {
			row = v.at.row
		}
		v.lines = slices.Insert(slices.Clone(v.lines), row, rows...)
		v.at = place{row, 0}
		return
	}
	if !before && len(v.line()) > 0 {
		v.at.col++
	}
	v.text(rows)
	v.at.col = max(0, v.at.col-1)
}

// mostPut is how much a single p may add, in characters and line ends: a count that was typed too long must not take
// all memory.
const mostPut = 1 << 22

// repeated is what was taken, n times over.
func (v *vim) repeated(n int) [][]rune {
	size := len(v.yank)
	for _, y := range v.yank {
		size += len(y)
	}
	if most := max(1, mostPut/size); n > most {
		n, v.message = most, fmt.Sprintf("it was put only %d times: more would be too much", most)
	}
	var rows [][]rune
	for i := range n {
		for j, y := range v.yank {
			if last := len(rows) - 1; !v.whole && i > 0 && j == 0 {
				rows[last] = append(rows[last], y...)
			} else {
				rows = append(rows, slices.Clone(y))
			}
		}
	}
	return rows
}

// text puts rows of text at the cursor and the cursor behind them.
func (v *vim) text(rows [][]rune) {
	line := v.line()
	head, tail := slices.Clone(line[:v.at.col]), slices.Clone(line[v.at.col:])
	last := len(rows) - 1
	out := make([][]rune, len(rows))
	for i := range rows {
		out[i] = slices.Clone(rows[i])
	}
	out[0] = append(head, out[0]...)
	col := len(out[last])
	out[last] = append(out[last], tail...)
	v.lines = slices.Replace(slices.Clone(v.lines), v.at.row, v.at.row+1, out...)
	v.at = place{v.at.row + last, col}
}

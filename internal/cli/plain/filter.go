// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

const (
	escape = 0x1b
	reset  = "\x1b[0m"
	// maxSGR is the longest colour sequence that passes: a true colour for text and background is 38 bytes.
	maxSGR = 48
	// maxStyle bounds what is repeated to continue a style; a program that goes beyond it loses its colours, not more.
	maxStyle = 128
)

// Filter makes a stream safe for a terminal. Its zero value escapes everything; with Colours, SGR sequences (ESC [ … m)
// pass, and a carriage return before a newline is dropped.
type Filter struct {
	Colours bool

	held  []byte // the beginning of a character or of a sequence, at the end of what came last
	style []byte // the sequences since the last reset
}

// Append adds to dst what p becomes. The end of p is held back if it may be the beginning of something.
func (f *Filter) Append(dst, p []byte) []byte {
	if len(p) == 0 {
		return dst
	}
	if len(f.held) > 0 {
		p = append(f.held, p...)
		f.held = nil
	}
	dst = append(dst, f.style...)
	for len(p) > 0 {
		n := f.next(&dst, p, false)
		if n == 0 {
			f.held = bytes.Clone(p)
			break
		}
		p = p[n:]
	}
	return f.pause(dst)
}

// Flush adds to dst what was held back, at the end of a line or of the stream, and forgets the style.
func (f *Filter) Flush(dst []byte) []byte {
	p := f.held
	f.held, f.style = nil, f.style[:0]
	for len(p) > 0 {
		p = p[f.next(&dst, p, true):]
	}
	return dst
}

// pause ends a style for the time until the next Append, which continues it: others may write meanwhile.
func (f *Filter) pause(dst []byte) []byte {
	if len(f.style) > 0 {
		dst = append(dst, reset...)
	}
	return dst
}

// next adds the first character or sequence of p and returns its length; 0 if it may go on beyond p, unless p is the
// last.
func (f *Filter) next(dst *[]byte, p []byte, last bool) int {
	switch b := p[0]; {
	case b == '\n':
		*dst = append(f.pause(*dst), '\n')
		f.style = f.style[:0]
		return 1
	case b == '\t' || b >= ' ' && b < 0x7f:
		*dst = append(*dst, b)
		return 1
	case f.Colours && b == '\r' && len(p) == 1 && !last:
		return 0
	case f.Colours && b == '\r' && len(p) > 1 && p[1] == '\n':
		return 1
	case f.Colours && b == escape:
		n, whole := sgr(p)
		if !whole && n == len(p) && n < maxSGR && !last {
			return 0
		}
		if whole {
			f.colour(dst, p[:n])
			return n
		}
	}
	if !utf8.FullRune(p) && !last {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	switch {
	case r == utf8.RuneError && n == 1 || r < ' ':
		*dst = fmt.Appendf(*dst, `\x%02x`, p[0])
		return 1
	case r > 0xffff && obeyed(r):
		*dst = fmt.Appendf(*dst, `\U%08x`, r)
	case obeyed(r):
		*dst = fmt.Appendf(*dst, `\u%04x`, r)
	default:
		*dst = append(*dst, p[:n]...)
	}
	return n
}

// colour lets a sequence pass, and remembers it. Concealed text is not let through: a reader could not see it.
func (f *Filter) colour(dst *[]byte, seq []byte) {
	params := bytes.Split(seq[2:len(seq)-1], []byte(";"))
	if conceals(params) {
		return
	}
	if len(params) == 1 && number(params[0]) == 0 {
		f.style = f.style[:0]
	} else if len(f.style)+len(seq) > maxStyle {
		return
	} else {
		f.style = append(f.style, seq...)
	}
	*dst = append(*dst, seq...)
}

// conceals reports whether one of a sequence's parameters is 8, "concealed", and not a part of a colour (38;5;8,
// 48;2;8;8;8).
func conceals(params [][]byte) bool {
	for i := 0; i < len(params); i++ {
		switch number(params[i]) {
		case 8:
			return true
		case 38, 48, 58:
			if i+1 < len(params) {
				i += map[int]int{5: 2, 2: 4}[number(params[i+1])]
			}
		}
	}
	return false
}

// number is that of a parameter; an empty one is 0. There are digits only.
func number(param []byte) int {
	n := 0
	for _, d := range param {
		n = min(n*10+int(d-'0'), 1000)
	}
	return n
}

// sgr returns the length of the colour sequence that p begins with, or with whole false how much of p could be the
// beginning of one.
func sgr(p []byte) (n int, whole bool) {
	if len(p) == 1 {
		return 1, false
	}
	if p[1] != '[' {
		return 0, false
	}
	for n = 2; n < len(p) && n < maxSGR; n++ {
		switch b := p[n]; {
		case b == 'm':
			return n + 1, true
		case b != ';' && (b < '0' || b > '9'):
			return 0, false
		}
	}
	return n, false
}

// obeyed reports whether a terminal, or the text around it, would obey a character instead of showing it: controls,
// what changes the direction of text, and what cannot be seen at all.
func obeyed(r rune) bool {
	switch {
	case unicode.IsControl(r): // C0, DEL, C1
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x206f: // direction
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb: // lines and marks of other kinds
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f // tags, which are invisible
}

// Text returns a whole text as a terminal may be given it. What is left alone once is left alone again: Text(Text(s))
// == Text(s).
func Text(text string) string {
	var f Filter
	return string(f.Flush(f.Append(nil, []byte(text))))
}

// Coloured is Text, but colours stay.
func Coloured(text string) string {
	f := Filter{Colours: true}
	return string(f.Flush(f.Append(nil, []byte(text))))
}

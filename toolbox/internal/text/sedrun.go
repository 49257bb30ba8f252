// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// cycle runs the program on the line that is in the pattern space.
func (s *sedder) cycle() error {
	for i := 0; i < len(s.program); i++ {
		c := s.program[i]
		if c.name == '}' || c.name == ':' || c.name == '#' {
			continue
		}
		if !s.selects(c) {
			if c.name == '{' {
				i = c.jump
			}
			continue
		}
		switch c.name {
		case '{':
		case 'b':
			i = c.jump
		case 't', 'T':
			if s.replaced == (c.name == 't') {
				i = c.jump
			}
			s.replaced = false
		case 'd':
			return s.flush()
		case 'D':
			at := bytes.IndexByte(s.space, '\n')
			if at < 0 {
				return s.flush()
			}
			s.space = s.space[at+1:]
			if err := s.flush(); err != nil {
				return err
			}
			i = -1
		case 'q', 'Q':
			if c.name == 'q' {
				if err := s.end(); err != nil {
					return err
				}
			}
			if c.nth != 0 {
				return applet.Exit(c.nth)
			}
			return errQuit
		default:
			if err := s.do(c); err != nil {
				return err
			}
			if c.name == 'c' {
				return s.flush()
			}
		}
	}
	return s.end()
}

// do runs a command that does not change the order of commands.
func (s *sedder) do(c *sedCommand) error {
	switch c.name {
	case 'p':
		return s.show()
	case 'P':
		line, _, _ := bytes.Cut(s.space, []byte("\n"))
		return s.print(line)
	case '=':
		return s.print(fmt.Appendf(nil, "%d", s.line))
	case 'l':
		return s.print(unambiguous(s.space))
	case 'a':
		s.after = append(s.after, c.text+"\n")
	case 'i':
		return s.print([]byte(c.text))
	case 'c':
		if c.to == nil || !c.active || c.not {
			return s.print([]byte(c.text))
		}
	case 'r':
		text, err := os.ReadFile(c.text) // one that is not there is empty
		if err == nil {
			s.after = append(s.after, string(text))
		}
	case 'w':
		_, err := c.file.Write(append(s.space[:len(s.space):len(s.space)], '\n'))
		return err
	case 'h':
		s.hold = bytes.Clone(s.space)
	case 'H':
		s.hold = append(append(s.hold, '\n'), s.space...)
	case 'g':
		s.space = bytes.Clone(s.hold)
	case 'G':
		s.space = append(append(bytes.Clone(s.space), '\n'), s.hold...)
	case 'x':
		s.space, s.hold = s.hold, s.space
	case 'n':
		return s.advance(func(line []byte) { s.space = line }, true)
	case 'N':
		return s.advance(func(line []byte) { s.space = append(append(bytes.Clone(s.space), '\n'), line...) }, false)
	case 'y':
		from, to := []rune(c.text), []rune(c.with)
		s.space = []byte(strings.Map(func(r rune) rune {
			for i, f := range from {
				if f == r {
					return to[i]
				}
			}
			return r
		}, string(s.space)))
	case 's':
		return s.substitute(c)
	}
	return nil
}

// unambiguous is what l prints: escapes in place of control characters and of bytes that are not ASCII, and $ at the
// end.
func unambiguous(line []byte) []byte {
	var b []byte
	for _, ch := range line {
		at := strings.IndexByte("\\\a\b\f\n\r\t\v", ch)
		switch {
		case at >= 0:
			b = append(b, '\\', `\abfnrtv`[at])
		case ch < 32 || ch > 126:
			b = fmt.Appendf(b, "\\%03o", ch)
		default:
			b = append(b, ch)
		}
	}
	return append(b, '$')
}

// advance reads the next line in the middle of a cycle.
func (s *sedder) advance(take func([]byte), show bool) error {
	if s.last() {
		if err := s.end(); err != nil {
			return err
		}
		return errQuit
	}
	if show && !s.quiet {
		if err := s.show(); err != nil {
			return err
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	line, _ := s.next()
	take(line)
	return nil
}

func (s *sedder) substitute(c *sedCommand) error {
	var out []byte
	at, n, done := 0, 0, false
	for _, m := range c.re.FindAllSubmatchIndex(s.space, -1) {
		n++
		if n < c.nth {
			continue
		}
		out = append(out, s.space[at:m[0]]...)
		out = c.expand(out, s.space, m)
		at, done = m[1], true
		if !c.global {
			break
		}
	}
	if !done {
		return nil
	}
	s.space = append(out, s.space[at:]...)
	s.replaced = true
	if c.print {
		if err := s.show(); err != nil {
			return err
		}
	}
	if c.file != nil {
		_, err := c.file.Write(append(s.space[:len(s.space):len(s.space)], '\n'))
		return err
	}
	return nil
}

// expand puts the replacement behind out: & is the match, \1 a group, \U \L \u \l \E change case.
func (c *sedCommand) expand(out, src []byte, m []int) []byte {
	change, once := byte(0), byte(0)
	add := func(text []byte) {
		word := string(text)
		switch change {
		case 'U':
			word = strings.ToUpper(word)
		case 'L':
			word = strings.ToLower(word)
		}
		if once != 0 && word != "" {
			first := strings.ToUpper(word[:1])
			if once == 'l' {
				first = strings.ToLower(word[:1])
			}
			word, once = first+word[1:], 0
		}
		out = append(out, word...)
	}
	group := func(i int) {
		if 2*i+1 < len(m) && m[2*i] >= 0 {
			add(src[m[2*i]:m[2*i+1]])
		}
	}
	for i := 0; i < len(c.with); i++ {
		switch ch := c.with[i]; {
		case ch == '&':
			group(0)
		case ch == '\\' && i+1 < len(c.with):
			i++
			switch next := c.with[i]; {
			case next >= '0' && next <= '9':
				group(int(next - '0'))
			case next == 'n':
				add([]byte("\n"))
			case next == 't':
				add([]byte("\t"))
			case next == 'U' || next == 'L':
				change = next
			case next == 'E':
				change = 0
			case next == 'u' || next == 'l':
				once = next
			default:
				add([]byte{next})
			}
		default:
			add([]byte{ch})
		}
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package text

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// sedParser reads a script.
type sedParser struct {
	text     string
	at       int
	extended bool
	quiet    bool // the script begins with #n
	open     []int
	labels   map[string]int
	out      []*sedCommand
}

func (p *sedParser) parse() ([]*sedCommand, error) {
	p.labels = map[string]int{}
	p.quiet = strings.HasPrefix(p.text, "#n\n")
	for {
		p.skip(" \t\n;")
		if p.at == len(p.text) {
			break
		}
		c := &sedCommand{}
		if err := p.addresses(c); err != nil {
			return nil, err
		}
		if p.at == len(p.text) {
			return nil, errors.New("missing command")
		}
		c.name = p.text[p.at]
		p.at++
		if err := p.arguments(c); err != nil {
			return nil, err
		}
		p.out = append(p.out, c)
	}
	if len(p.open) > 0 {
		return nil, errors.New("a } is missing")
	}
	for _, c := range p.out {
		if strings.IndexByte("btT", c.name) >= 0 {
			c.jump = len(p.out)
			if c.text != "" {
				to, ok := p.labels[c.text]
				if !ok {
					return nil, fmt.Errorf("label %q is not there", c.text)
				}
				c.jump = to
			}
		}
	}
	return p.out, nil
}

func (p *sedParser) skip(set string) {
	for p.at < len(p.text) && strings.IndexByte(set, p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *sedParser) addresses(c *sedCommand) (err error) {
	if c.from, err = p.address(); err != nil {
		return err
	}
	if c.from != nil && p.at < len(p.text) && p.text[p.at] == ',' {
		p.at++
		p.skip(" \t")
		if c.to, err = p.address(); err != nil {
			return err
		}
		if c.to == nil {
			return errors.New("missing second address")
		}
	}
	p.skip(" \t")
	for p.at < len(p.text) && p.text[p.at] == '!' {
		c.not = true
		p.at++
		p.skip(" \t")
	}
	return nil
}

func (p *sedParser) number() (int, bool) {
	end := p.at + digits(p.text[p.at:])
	n, err := strconv.Atoi(p.text[p.at:end])
	p.at = end
	return n, err == nil
}

func (p *sedParser) address() (*sedAddress, error) {
	if p.at == len(p.text) {
		return nil, nil
	}
	switch ch := p.text[p.at]; {
	case ch == '$':
		p.at++
		return &sedAddress{end: true}, nil
	case ch == '+':
		p.at++
		n, ok := p.number()
		if !ok {
			return nil, errors.New("missing number after +")
		}
		return &sedAddress{line: n, plus: true}, nil
	case ch >= '0' && ch <= '9':
		a := &sedAddress{}
		a.line, _ = p.number()
		if p.at < len(p.text) && p.text[p.at] == '~' {
			p.at++
			a.step, _ = p.number()
		}
		return a, nil
	case ch == '/' || ch == '\\' && p.at+1 < len(p.text):
		if ch == '\\' {
			p.at++
			ch = p.text[p.at]
		}
		p.at++
		text, err := p.until(ch, true)
		if err != nil {
			return nil, err
		}
		fold := p.at < len(p.text) && p.text[p.at] == 'I'
		if fold {
			p.at++
		}
		re, err := compile(text, p.extended, fold)
		return &sedAddress{re: re}, err
	}
	return nil, nil
}

// until reads up to a delimiter; an escaped delimiter is itself.
func (p *sedParser) until(delim byte, pattern bool) (string, error) {
	var b strings.Builder
	inside := false // a [...] of a pattern
	for p.at < len(p.text) {
		ch := p.text[p.at]
		p.at++
		switch {
		case ch == '\\' && p.at < len(p.text):
			next := p.text[p.at]
			p.at++
			if next != delim || pattern && strings.IndexByte("|+?(){}", delim) >= 0 {
				b.WriteByte('\\')
			} else if !pattern && delim == '&' {
				b.WriteByte('\\')
			}
			b.WriteByte(next)
			continue
		case ch == delim && !inside:
			return b.String(), nil
		case pattern && ch == '[' && !inside:
			inside = true
			b.WriteByte(ch)
			for _, c := range []byte("^]") { // a ] in the first place is itself
				if p.at < len(p.text) && p.text[p.at] == c {
					b.WriteByte(c)
					p.at++
				}
			}
			continue
		case ch == ']':
			inside = false
		}
		b.WriteByte(ch)
	}
	return "", fmt.Errorf("a %c is missing", delim)
}

// line reads the rest of a line; a backslash at its end joins the next one.
func (p *sedParser) line() string {
	var b strings.Builder
	for p.at < len(p.text) && p.text[p.at] != '\n' {
		if p.text[p.at] == '\\' && p.at+1 < len(p.text) {
			p.at++
		}
		b.WriteByte(p.text[p.at])
		p.at++
	}
	return b.String()
}

func (p *sedParser) arguments(c *sedCommand) error {
	switch c.name {
	case '{':
		p.open = append(p.open, len(p.out))
		return nil
	case '}':
		if len(p.open) == 0 {
			return errors.New("a } without a {")
		}
		p.out[p.open[len(p.open)-1]].jump = len(p.out)
		p.open = p.open[:len(p.open)-1]
	case '#':
		p.line()
		return nil
	case 'a', 'i', 'c':
		p.skip(" \t")
		if strings.HasPrefix(p.text[p.at:], "\\\n") {
			p.at += 2
		} else if strings.HasPrefix(p.text[p.at:], "\\") {
			p.at++ // keeps the blanks that follow
		}
		c.text = p.line()
		return nil
	case ':', 'b', 't', 'T':
		p.skip(" \t")
		end := strings.IndexAny(p.text[p.at:], ";\n} ")
		if end < 0 {
			end = len(p.text) - p.at
		}
		c.text = p.text[p.at : p.at+end]
		p.at += end
		if c.name == ':' {
			p.labels[c.text] = len(p.out)
		}
	case 'r', 'w':
		p.skip(" \t")
		c.text = p.line()
		if c.name == 'w' {
			return c.openFile(c.text)
		}
		return nil
	case 's':
		return p.substitution(c)
	case 'y':
		return p.transliteration(c)
	case 'q', 'Q':
		p.skip(" \t")
		c.nth, _ = p.number()
	case 'p', 'P', 'd', 'D', 'n', 'N', 'g', 'G', 'h', 'H', 'x', '=', 'l':
	default:
		return fmt.Errorf("command %q is not known", c.name)
	}
	p.skip(" \t")
	if p.at < len(p.text) && strings.IndexByte(";\n}#", p.text[p.at]) < 0 {
		return fmt.Errorf("%q behind command %c is too much", p.text[p.at:], c.name)
	}
	return nil
}

func (c *sedCommand) openFile(name string) (err error) {
	switch name {
	case "/dev/stdout":
		c.file = os.Stdout
	case "/dev/stderr":
		c.file = os.Stderr
	default:
		c.file, err = os.Create(name)
	}
	return err
}

func (p *sedParser) substitution(c *sedCommand) error {
	if p.at == len(p.text) {
		return errors.New("s needs a pattern")
	}
	delim := p.text[p.at]
	p.at++
	pattern, err := p.until(delim, true)
	if err != nil {
		return err
	}
	if c.with, err = p.until(delim, false); err != nil {
		return err
	}
	fold := false
	for p.at < len(p.text) && strings.IndexByte(";\n} \t#", p.text[p.at]) < 0 {
		switch ch := p.text[p.at]; {
		case ch == 'g':
			c.global = true
		case ch == 'p':
			c.print = true
		case ch == 'i' || ch == 'I':
			fold = true
		case ch >= '1' && ch <= '9':
			c.nth, _ = p.number()
			continue
		case ch == 'w':
			p.at++
			p.skip(" \t")
			if err := c.openFile(p.line()); err != nil {
				return err
			}
			continue
		default:
			return fmt.Errorf("flag %q of s is not known", ch)
		}
		p.at++
	}
	c.re, err = compile(pattern, p.extended, fold)
	return err
}

func (p *sedParser) transliteration(c *sedCommand) error {
	if p.at == len(p.text) {
		return errors.New("y needs characters")
	}
	delim := p.text[p.at]
	p.at++
	from, err := p.until(delim, false)
	if err != nil {
		return err
	}
	to, err := p.until(delim, false)
	if err != nil {
		return err
	}
	plain := strings.NewReplacer(`\n`, "\n", `\\`, `\`, `\t`, "\t")
	c.text, c.with = plain.Replace(from), plain.Replace(to)
	if utf8.RuneCountInString(c.text) != utf8.RuneCountInString(c.with) {
		return errors.New("y needs as many characters on both sides")
	}
	return nil
}

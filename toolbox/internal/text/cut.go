// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// span is a part of a list as 1-3; to is 0 when it is open.
type span struct{ from, to int }

func parseSpans(text string) ([]span, error) {
	var out []span
	for part := range strings.SplitSeq(text, ",") {
		a, b, open := strings.Cut(part, "-")
		s := span{1, 0}
		var err error
		if a != "" {
			if s.from, err = strconv.Atoi(a); err == nil && !open {
				s.to = s.from
			}
		}
		if b != "" && err == nil {
			s.to, err = strconv.Atoi(b)
		}
		if err != nil || s.from < 1 || part == "" || part == "-" || s.to != 0 && s.to < s.from {
			return nil, fmt.Errorf("list %q is not as 1,3-5,7-", text)
		}
		out = append(out, s)
	}
	return out, nil
}

func selected(list []span, n int) bool {
	for _, s := range list {
		if n >= s.from && (s.to == 0 || n <= s.to) {
			return true
		}
	}
	return false
}

// cutter is one run of cut.
type cutter struct {
	*applet.Call
	fields, chars, octets, delim, out *string
	only, invert                      *bool
	list                              []span
}

func cut(c *applet.Call) error {
	t := &cutter{Call: c}
	t.fields = c.String("f,fields", "LIST", "", "fields, for example 1,3-5,7-")
	t.chars = c.String("c,characters", "LIST", "", "characters")
	t.octets = c.String("b,bytes", "LIST", "", "bytes")
	t.delim = c.String("d,delimiter", "CHAR", "\t", "what stands between fields")
	t.only = c.Bool("s,only-delimited", "no lines without the delimiter")
	t.out = c.String(",output-delimiter", "TEXT", "", "what to print between fields")
	t.invert = c.Bool(",complement", "all but these")
	c.Bool("n", "does nothing")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	return c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(line []byte) error {
			t.line(string(line))
			return nil
		})
	})
}

// check reads the list, and sees to it that the flags go together.
func (t *cutter) check() (err error) {
	text := *t.fields + *t.chars + *t.octets
	if text == "" || text != *t.fields && text != *t.chars && text != *t.octets {
		return applet.Usage("missing one of -f, -c and -b")
	}
	if t.list, err = parseSpans(text); err != nil {
		return applet.Usage("%v", err)
	}
	switch _, size := utf8.DecodeRuneInString(*t.delim); {
	case *t.delim == "":
		*t.delim = "\x00"
	case size < len(*t.delim):
		return applet.Usage("the delimiter %q is more than one character", *t.delim)
	case *t.fields == "" && (*t.delim != "\t" || *t.only):
		return applet.Usage("-d and -s are for -f")
	}
	if *t.out == "" && *t.fields != "" {
		*t.out = *t.delim
	}
	return nil
}

// line prints the parts of a line that were asked for.
func (t *cutter) line(line string) {
	if *t.fields != "" && !strings.Contains(line, *t.delim) {
		if !*t.only {
			t.Println(line)
		}
		return
	}
	var kept []string
	for i, p := range t.parts(line) {
		if selected(t.list, i+1) != *t.invert {
			kept = append(kept, p)
		}
	}
	t.Println(strings.Join(kept, *t.out))
}

// parts divides a line into fields, characters or bytes.
func (t *cutter) parts(line string) []string {
	switch {
	case *t.fields != "":
		return strings.Split(line, *t.delim)
	case *t.octets == "":
		return strings.Split(line, "")
	}
	parts := make([]string, len(line))
	for i := range len(line) { // bytes, not characters
		parts[i] = line[i : i+1]
	}
	return parts
}

// set reads a set of tr: ranges, classes, escapes.
func set(text string) ([]rune, error) {
	var out []rune
	runes := []rune(text)
	next := func(i int) (rune, int) {
		if runes[i] != '\\' || i+1 == len(runes) {
			return runes[i], i + 1
		}
		i++
		if at := strings.IndexRune(`ntrabfv\`, runes[i]); at >= 0 {
			return []rune("\n\t\r\a\b\f\v\\")[at], i + 1
		}
		n, end := rune(0), i
		for end < len(runes) && end < i+3 && runes[end] >= '0' && runes[end] <= '7' {
			n = n*8 + runes[end] - '0'
			end++
		}
		if end > i {
			return n, end
		}
		return runes[i], i + 1
	}
	for i := 0; i < len(runes); {
		if rest := string(runes[i:]); strings.HasPrefix(rest, "[:") {
			if end := strings.Index(rest, ":]"); end > 0 {
				class, err := class(rest[2:end])
				if err != nil {
					return nil, err
				}
				out = append(out, class...)
				i += end + 2
				continue
			}
		}
		var a rune
		a, i = next(i)
		if i+1 < len(runes) && runes[i] == '-' {
			var b rune
			b, i = next(i + 1)
			if b < a {
				return nil, fmt.Errorf("range %c-%c is backwards", a, b)
			}
			for ; a <= b; a++ {
				out = append(out, a)
			}
			continue
		}
		out = append(out, a)
	}
	return out, nil
}

func class(name string) (out []rune, err error) {
	is, ok := map[string]func(rune) bool{
		"alpha": unicode.IsLetter, "digit": unicode.IsDigit, "upper": unicode.IsUpper, "lower": unicode.IsLower,
		"space": unicode.IsSpace, "punct": func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) },
		"alnum": func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }, "cntrl": unicode.IsControl,
		"blank": func(r rune) bool { return r == ' ' || r == '\t' }, "print": unicode.IsPrint,
		"graph":  func(r rune) bool { return unicode.IsPrint(r) && r != ' ' },
		"xdigit": func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) },
	}[name]
	if !ok {
		return nil, fmt.Errorf("class [:%s:] is not known", name)
	}
	for r := rune(0); r < 128; r++ {
		if is(r) {
			out = append(out, r)
		}
	}
	return out, nil
}

// translation is what a run of tr does with characters.
type translation struct {
	table                   map[rune]rune // of the first set: what becomes of them
	squeezed                map[rune]bool // of which one stands for many
	to                      []rune        // the second set
	remove, squeeze, invert bool
	last                    rune // the last one that was written
}

func tr(c *applet.Call) error {
	remove, squeeze := c.Bool("d,delete", "delete"), c.Bool("s,squeeze-repeats", "one in place of many")
	invert := c.Bool("c,complement", "all that are not in the first set")
	c.Do("C", "as -c", func() { *invert = true })
	if err := c.Parse(1, 2); err != nil {
		return err
	}
	if len(c.Args) == 1 && !*remove && !*squeeze {
		return applet.Usage("missing second set")
	}
	from, err := set(c.Args[0])
	var to []rune
	if err == nil && len(c.Args) == 2 {
		to, err = set(c.Args[1])
	}
	if err != nil {
		return applet.Usage("%v", err)
	}
	if len(c.Args) == 2 && len(to) == 0 && !*remove {
		return applet.Usage("the second set is empty")
	}
	t := &translation{table: map[rune]rune{}, squeezed: map[rune]bool{}, to: to, remove: *remove, squeeze: *squeeze,
		invert: *invert, last: -1}
	for i, r := range from {
		t.table[r] = r
		if len(to) > 0 && !*remove {
			t.table[r] = to[min(i, len(to)-1)]
		}
	}
	of := from
	if len(to) > 0 {
		of = to
	}
	for _, r := range of {
		t.squeezed[r] = true
	}
	return t.copy(c.Out, bufio.NewReader(c.In))
}

// copy translates all that comes.
func (t *translation) copy(out *bufio.Writer, in *bufio.Reader) error {
	for {
		r, size, err := in.ReadRune()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		raw := byte(0)
		bad := r == unicode.ReplacementChar && size == 1
		if bad { // a byte that is no text stays one
			_ = in.UnreadRune()
			raw, _ = in.ReadByte()
			r = -2 - rune(raw)
		}
		mapped, kept := t.translate(r)
		if !kept {
			continue
		}
		if mapped == r && bad {
			err = out.WriteByte(raw)
		} else {
			_, err = out.WriteRune(mapped)
		}
		if err != nil {
			return err
		}
	}
}

// translate says what becomes of a character; not kept: it is left out.
func (t *translation) translate(r rune) (mapped rune, kept bool) {
	mapped, hit := t.table[r]
	if hit == t.invert {
		mapped, hit = r, false
	} else if hit = true; t.invert {
		if mapped = r; len(t.to) > 0 && !t.remove {
			mapped = t.to[len(t.to)-1]
		}
	}
	if hit && t.remove {
		return 0, false
	}
	inSet := t.squeezed[mapped] || t.invert && len(t.to) == 0 && hit
	if t.squeeze && inSet && mapped == t.last {
		return 0, false
	}
	t.last = mapped
	return mapped, true
}

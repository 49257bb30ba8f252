// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// sortKey is a -k: fields and how they compare.
type sortKey struct {
	from, fromChar, to, toChar                         int // from 1; 0 is "not given"
	numeric, human, reverse, fold, version, blank, own bool
	general, months, dictionary, printing              bool
}

// sorting is one run of sort.
type sorting struct {
	*applet.Call
	all                           sortKey // of options that are no key's own
	keys                          []sortKey
	sep                           string
	unique, stable, check, silent bool
	end                           byte // of a line
}

func sortLines(c *applet.Call) error {
	s := &sorting{Call: c, end: '\n'}
	s.order()
	unique := c.Bool("u,unique", "of equal lines the first only")
	stable := c.Bool("s,stable", "equal lines keep their order")
	check := c.Bool("c,check", "only check whether it is sorted")
	c.Do("C", "as -c, without a message", func() { *check, s.silent = true, true })
	c.Do("z,zero-terminated", "lines end in a byte 0", func() { s.end = 0 })
	c.Do("m,merge", "files are sorted already (does nothing)", func() {})
	sep := c.String("t,field-separator", "CHAR", "", "what stands between fields; default blanks")
	specs := c.Strings("k,key", "FROM[,TO]", "sort by these fields, for example 2, 2,3 or 2.3,2.5nr")
	out := c.String("o,output", "FILE", "", "where to write; may be one of the files")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if *sep == `\t` {
		*sep = "\t"
	}
	if utf8.RuneCountInString(*sep) > 1 {
		return applet.Usage("the separator %q is more than one character", *sep)
	}
	s.unique, s.stable, s.check, s.sep = *unique, *stable, *check, *sep
	if err := s.readKeys(*specs); err != nil {
		return err
	}
	lines, err := s.read()
	if err != nil {
		return err
	}
	if s.check {
		return s.outOfOrder(lines)
	}
	slices.SortStableFunc(lines, s.byAll)
	if s.unique {
		lines = slices.CompactFunc(lines, func(a, b string) bool { return s.byKeys(a, b) == 0 })
	}
	return s.write(*out, lines)
}

// order declares the options that say how lines compare.
func (s *sorting) order() {
	all := &s.all
	s.Do("n,numeric-sort", "as numbers", func() { all.numeric = true })
	s.Do("g,general-numeric-sort", "as numbers, which may be written as 1e3", func() { all.general = true })
	s.Do("M,month-sort", "as months: JAN before FEB", func() { all.months = true })
	s.Do("d,dictionary-order", "letters, digits and blanks count only", func() { all.dictionary = true })
	s.Do("i,ignore-nonprinting", "printable characters count only", func() { all.printing = true })
	s.Do("h,human-numeric-sort", "as sizes: 2K before 1M", func() { all.human = true })
	s.Do("V,version-sort", "as versions: 1.9 before 1.10", func() { all.version = true })
	s.Do("r,reverse", "backwards", func() { all.reverse = true })
	s.Do("f,ignore-case", "upper and lower case are the same", func() { all.fold = true })
	s.Do("b,ignore-leading-blanks", "leave blanks at the front out", func() { all.blank = true })
}

// readKeys reads what was given with -k. A key that says nothing of how it compares does as all lines do.
func (s *sorting) readKeys(specs []string) error {
	for _, spec := range specs {
		k, err := parseKey(spec)
		if err != nil {
			return applet.Usage("%v", err)
		}
		if !k.own {
			from, fromChar, to, toChar := k.from, k.fromChar, k.to, k.toChar
			k = s.all
			k.from, k.fromChar, k.to, k.toChar = from, fromChar, to, toChar
		}
		s.keys = append(s.keys, k)
	}
	if len(s.keys) == 0 {
		s.keys = []sortKey{s.all}
	}
	return nil
}

// read returns the lines of all files, or none: a part of the input is not sorted in place of all.
func (s *sorting) read() (lines []string, err error) {
	if len(s.Args) == 0 {
		s.Args = []string{"-"}
	}
	for _, name := range s.Args {
		r, err := s.Open(name)
		if err == nil {
			err = applet.Parts(r, s.end, func(l []byte, _ bool) error { lines = append(lines, string(l)); return nil })
			r.Close()
		}
		if err != nil {
			return nil, applet.Fail(2, "%w", err)
		}
	}
	return lines, nil
}

func (s *sorting) byKeys(a, b string) int {
	for _, k := range s.keys {
		if by := k.compare(k.part(a, s.sep), k.part(b, s.sep)); by != 0 {
			return by
		}
	}
	return 0
}

// byAll has whole lines compare where keys are equal.
func (s *sorting) byAll(a, b string) int {
	by := s.byKeys(a, b)
	if by == 0 && !s.stable && !s.unique {
		if by = cmp.Compare(a, b); s.all.reverse {
			by = -by
		}
	}
	return by
}

// outOfOrder is what -c finds.
func (s *sorting) outOfOrder(lines []string) error {
	for i := 1; i < len(lines); i++ {
		if by := s.byAll(lines[i-1], lines[i]); by > 0 || by == 0 && s.unique {
			if s.silent {
				return applet.Exit(1)
			}
			return applet.Fail(1, "line %d is out of order: %s", i+1, lines[i])
		}
	}
	return nil
}

func (s *sorting) write(file string, lines []string) error {
	to := s.Out
	if file != "" {
		f, err := os.Create(file)
		if err != nil {
			return applet.Fail(2, "%w", err)
		}
		defer f.Close()
		to = bufio.NewWriter(f)
	}
	for _, l := range lines {
		_, _ = to.WriteString(l) // a failure shows when it is flushed
		_ = to.WriteByte(s.end)
	}
	return to.Flush()
}

// parseKey reads F[.C][OPTS][,F[.C][OPTS]].
func parseKey(text string) (sortKey, error) {
	var k sortKey
	from, to, _ := strings.Cut(text, ",")
	for i, part := range []string{from, to} {
		digits := strings.TrimRight(part, "bfghnrVdiM")
		for _, o := range part[len(digits):] {
			k.own = true
			switch o {
			case 'n':
				k.numeric = true
			case 'g':
				k.general = true
			case 'M':
				k.months = true
			case 'd':
				k.dictionary = true
			case 'i':
				k.printing = true
			case 'h':
				k.human = true
			case 'V':
				k.version = true
			case 'r':
				k.reverse = true
			case 'f':
				k.fold = true
			case 'b':
				k.blank = true
			}
		}
		if part == "" {
			continue
		}
		field, char, _ := strings.Cut(digits, ".")
		f, err := strconv.Atoi(field)
		ch := 0
		if err == nil && char != "" {
			ch, err = strconv.Atoi(char)
		}
		if err != nil || f < 1 {
			return k, fmt.Errorf("key %q is not as 2, 2,3 or 2.3,2.5nr", text)
		}
		if i == 0 {
			k.from, k.fromChar = f, ch
		} else {
			k.to, k.toChar = f, ch
		}
	}
	if k.from == 0 {
		return k, fmt.Errorf("key %q is not as 2, 2,3 or 2.3,2.5nr", text)
	}
	return k, nil
}

// part cuts out of a line what a key compares.
func (k sortKey) part(line, sep string) string {
	if k.from > 0 {
		starts, ends := fieldsAt(line, sep)
		if k.from > len(starts) {
			return ""
		}
		a, b := starts[k.from-1], len(line)
		if k.to > 0 && k.to <= len(ends) {
			b = ends[k.to-1]
			if k.toChar > 0 {
				b = min(b, starts[k.to-1]+skip(line[starts[k.to-1]:], k.blank || sep == "")+k.toChar)
			}
		}
		if sep == "" {
			a += skip(line[a:], k.blank || k.numeric || k.human)
		}
		a += max(0, k.fromChar-1)
		line = line[min(a, len(line)):max(min(a, len(line)), b)]
	}
	if k.blank {
		line = strings.TrimLeft(line, " \t")
	}
	if k.fold {
		line = strings.ToUpper(line)
	}
	if k.dictionary || k.printing {
		line = strings.Map(func(r rune) rune {
			if k.dictionary && r != ' ' && r != '\t' && !unicode.IsLetter(r) && !unicode.IsDigit(r) ||
				k.printing && !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, line)
	}
	return line
}

func skip(text string, want bool) int {
	if !want {
		return 0
	}
	return len(text) - len(strings.TrimLeft(text, " \t"))
}

// fieldsAt tells where fields begin (with the blanks before them, as POSIX has it) and end.
func fieldsAt(line, sep string) (starts, ends []int) {
	if sep != "" {
		at := 0
		for f := range strings.SplitSeq(line, sep) {
			starts, ends = append(starts, at), append(ends, at+len(f))
			at += len(f) + len(sep)
		}
		return starts, ends
	}
	for at := 0; at < len(line); {
		end := at + skip(line[at:], true)
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		starts, ends = append(starts, at), append(ends, end)
		at = end
	}
	return starts, ends
}

func (k sortKey) compare(a, b string) int {
	by := 0
	switch {
	case k.numeric:
		by = cmp.Compare(leading(a), leading(b))
	case k.general:
		by = cmp.Compare(general(a), general(b))
	case k.months:
		by = cmp.Compare(month(a), month(b))
	case k.human:
		by = cmp.Compare(humanSize(a), humanSize(b))
	case k.version:
		by = versions(a, b)
	default:
		by = cmp.Compare(a, b)
	}
	if k.reverse {
		return -by
	}
	return by
}

// leading is the number a text begins with, or 0.
func leading(text string) float64 {
	text = strings.TrimLeft(text, " \t")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' || text[end] == '-' && end == 0) {
		end++
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0
	}
	return n
}

// general is the number a text begins with, as 1e3, 0x1f or inf too. What begins with none comes before all numbers.
func general(text string) float64 {
	text = strings.TrimLeft(text, " \t")
	for end := len(text); end > 0; end-- {
		if n, err := strconv.ParseFloat(text[:end], 64); err == nil || errors.Is(err, strconv.ErrRange) {
			return n
		}
		if n, err := strconv.ParseInt(text[:end], 0, 64); err == nil {
			return float64(n)
		}
	}
	return math.NaN() // which cmp.Compare has first
}

// month is the number of the month whose name a text begins with, or 0.
func month(text string) int {
	text = strings.ToUpper(strings.TrimLeft(text, " \t"))
	if len(text) < 3 {
		return 0
	}
	return 1 + slices.Index([]string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV",
		"DEC"}, text[:3])
}

func humanSize(text string) float64 {
	text = strings.TrimSpace(text)
	n := leading(text)
	unit := strings.TrimLeft(text, "-0123456789.")
	if unit != "" {
		for range strings.IndexByte(" KMGTPE", strings.ToUpper(unit)[0]) {
			n *= 1024
		}
	}
	return n
}

// versions compares runs of digits as numbers.
func versions(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if by := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); by != 0 {
				return by
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}

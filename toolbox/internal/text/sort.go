// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// sortKey is a -k: fields and how they compare.
type sortKey struct {
	from, fromChar, to, toChar                         int // from 1; 0 is "not given"
	numeric, human, reverse, fold, version, blank, own bool
}

func sortLines(c *applet.Call) error {
	var all sortKey
	c.Do("n,numeric-sort", "as numbers", func() { all.numeric = true })
	c.Do("g,general-numeric-sort", "as -n", func() { all.numeric = true })
	c.Do("h,human-numeric-sort", "as sizes: 2K before 1M", func() { all.human = true })
	c.Do("V,version-sort", "as versions: 1.9 before 1.10", func() { all.version = true })
	c.Do("r,reverse", "backwards", func() { all.reverse = true })
	c.Do("f,ignore-case", "upper and lower case are the same", func() { all.fold = true })
	c.Do("b,ignore-leading-blanks", "leave blanks at the front out", func() { all.blank = true })
	unique := c.Bool("u,unique", "of equal lines the first only")
	stable := c.Bool("s,stable", "equal lines keep their order")
	check := c.Bool("c,check", "only check whether it is sorted")
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
	var keys []sortKey
	for _, s := range *specs {
		k, err := parseKey(s)
		if err != nil {
			return applet.Usage("%v", err)
		}
		if !k.own {
			k.numeric, k.human, k.version, k.reverse, k.fold, k.blank = all.numeric, all.human, all.version, all.reverse, all.fold, all.blank
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		keys = []sortKey{all}
	}
	var lines []string
	if err := c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(l []byte) error { lines = append(lines, string(l)); return nil })
	}); err != nil {
		return err
	}
	byKeys := func(a, b string) int {
		for _, k := range keys {
			if by := k.compare(k.part(a, *sep), k.part(b, *sep)); by != 0 {
				return by
			}
		}
		return 0
	}
	byAll := func(a, b string) int {
		by := byKeys(a, b)
		if by == 0 && !*stable && !*unique {
			if by = cmp.Compare(a, b); all.reverse {
				by = -by
			}
		}
		return by
	}
	if *check {
		for i := 1; i < len(lines); i++ {
			if by := byAll(lines[i-1], lines[i]); by > 0 || by == 0 && *unique {
				return applet.Fail(1, "line %d is out of order: %s", i+1, lines[i])
			}
		}
		return nil
	}
	slices.SortStableFunc(lines, byAll)
	if *unique {
		lines = slices.CompactFunc(lines, func(a, b string) bool { return byKeys(a, b) == 0 })
	}
	to := c.Out
	if *out != "" {
		f, err := os.Create(*out)
		if err != nil {
			return err
		}
		defer f.Close()
		to = bufio.NewWriter(f)
	}
	for _, l := range lines {
		fmt.Fprintln(to, l)
	}
	return to.Flush()
}

// parseKey reads F[.C][OPTS][,F[.C][OPTS]].
func parseKey(text string) (sortKey, error) {
	var k sortKey
	from, to, _ := strings.Cut(text, ",")
	for i, part := range []string{from, to} {
		digits := strings.TrimRight(part, "bfghnrVdi")
		for _, o := range part[len(digits):] {
			k.own = true
			switch o {
			case 'n', 'g':
				k.numeric = true
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

func uniq(c *applet.Call) error {
	count := c.Bool("c,count", "say how often")
	dup, single := c.Bool("d,repeated", "repeated lines only"), c.Bool("u,unique", "lines that are not repeated only")
	fold := c.Bool("i,ignore-case", "upper and lower case are the same")
	fields := c.Int("f,skip-fields", "N", 0, "do not compare the first N fields")
	if err := c.Parse(0, 2); err != nil {
		return err
	}
	out := c.Out
	if len(c.Args) == 2 {
		f, err := os.Create(c.Args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		out = bufio.NewWriter(f)
		c.Args = c.Args[:1]
	}
	key := func(line string) string {
		if *fields > 0 {
			_, ends := fieldsAt(line, "")
			if len(ends) <= *fields {
				line = ""
			} else {
				line = line[ends[*fields-1]:]
			}
		}
		if *fold {
			line = strings.ToLower(line)
		}
		return line
	}
	last, n := "", 0
	flush := func() {
		if n == 0 || *dup && n == 1 || *single && n > 1 {
			return
		}
		if *count {
			fmt.Fprintf(out, "%7d ", n)
		}
		fmt.Fprintln(out, last)
	}
	err := c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Lines(r, func(line []byte) error {
			if n > 0 && key(string(line)) == key(last) {
				n++
				return nil
			}
			flush()
			last, n = string(line), 1
			return nil
		})
	})
	flush()
	return errors.Join(err, out.Flush())
}

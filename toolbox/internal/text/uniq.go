// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// uniqKey says what of a line is compared.
type uniqKey struct {
	fields, skip, width *int
	fold                *bool
}

// uniquer is one run of uniq.
type uniquer struct {
	key                     uniqKey
	count, dup, single, all *bool
	end                     byte // of a line
	out                     *bufio.Writer
	last                    string
	n                       int // how often the last line has come
}

func uniq(c *applet.Call) error {
	u := &uniquer{end: '\n', out: c.Out}
	u.count = c.Bool("c,count", "say how often")
	u.dup = c.Bool("d,repeated", "repeated lines only")
	u.single = c.Bool("u,unique", "lines that are not repeated only")
	u.all = c.Bool("D", "repeated lines only, each as often as it is there")
	u.key = uniqKey{
		fold:   c.Bool("i,ignore-case", "upper and lower case are the same"),
		fields: c.Int("f,skip-fields", "N", 0, "do not compare the first N fields"),
		skip:   c.Int("s,skip-chars", "N", 0, "nor the first N characters after them"),
		width:  c.Int("w,check-chars", "N", -1, "compare N characters at most"),
	}
	c.Do("z,zero-terminated", "lines end in a byte 0", func() { u.end = 0 })
	if err := c.Parse(0, 2); err != nil {
		return err
	}
	if *u.key.fields < 0 || *u.key.skip < 0 {
		return applet.Usage("-f and -s want 0 or more")
	}
	if len(c.Args) == 2 && c.Args[1] != "-" {
		f, err := os.Create(c.Args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		u.out = bufio.NewWriter(f)
	}
	err := c.Each(c.Args[:min(len(c.Args), 1)], func(_ string, r io.Reader) error {
		return applet.Parts(r, u.end, func(line []byte, _ bool) error {
			u.add(string(line))
			return nil
		})
	})
	u.flush()
	return errors.Join(err, u.out.Flush())
}

// add takes the next line, and prints the last ones if this is another.
func (u *uniquer) add(line string) {
	if u.n == 0 || u.key.of(line) != u.key.of(u.last) {
		u.flush()
		u.last, u.n = line, 1
		return
	}
	if u.n++; *u.all {
		if u.n == 2 {
			u.print()
		}
		u.last = line
		u.print()
	}
}

// flush prints the last line, if it is wanted and was not printed yet.
func (u *uniquer) flush() {
	if u.n == 0 || *u.all || *u.dup && u.n == 1 || *u.single && u.n > 1 {
		return
	}
	u.print()
}

func (u *uniquer) print() {
	if *u.count {
		fmt.Fprintf(u.out, "%7d ", u.n)
	}
	fmt.Fprintf(u.out, "%s%c", u.last, u.end)
}

func (k uniqKey) of(line string) string {
	if *k.fields > 0 {
		_, ends := fieldsAt(line, "")
		if len(ends) <= *k.fields {
			line = ""
		} else {
			line = line[ends[*k.fields-1]:]
		}
	}
	line = line[min(*k.skip, len(line)):]
	if *k.width >= 0 {
		line = line[:min(*k.width, len(line))]
	}
	if *k.fold {
		line = strings.ToLower(line)
	}
	return line
}

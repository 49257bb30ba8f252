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

func uniq(c *applet.Call) error {
	count := c.Bool("c,count", "say how often")
	dup, single := c.Bool("d,repeated", "repeated lines only"), c.Bool("u,unique", "lines that are not repeated only")
	all := c.Bool("D", "repeated lines only, each as often as it is there")
	key := uniqKey{
		fold:   c.Bool("i,ignore-case", "upper and lower case are the same"),
		fields: c.Int("f,skip-fields", "N", 0, "do not compare the first N fields"),
		skip:   c.Int("s,skip-chars", "N", 0, "nor the first N characters after them"),
		width:  c.Int("w,check-chars", "N", -1, "compare N characters at most"),
	}
	end := byte('\n')
	c.Do("z,zero-terminated", "lines end in a byte 0", func() { end = 0 })
	if err := c.Parse(0, 2); err != nil {
		return err
	}
	if *key.fields < 0 || *key.skip < 0 {
		return applet.Usage("-f and -s want 0 or more")
	}
	out := c.Out
	if len(c.Args) == 2 && c.Args[1] != "-" {
		f, err := os.Create(c.Args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		out = bufio.NewWriter(f)
	}
	c.Args = c.Args[:min(len(c.Args), 1)]
	last, n := "", 0
	print := func() {
		if *count {
			fmt.Fprintf(out, "%7d ", n)
		}
		fmt.Fprintf(out, "%s%c", last, end)
	}
	flush := func() {
		if n == 0 || *all || *dup && n == 1 || *single && n > 1 {
			return
		}
		print()
	}
	err := c.Each(c.Args, func(_ string, r io.Reader) error {
		return applet.Parts(r, end, func(line []byte, _ bool) error {
			if n > 0 && key.of(string(line)) == key.of(last) {
				if n++; *all {
					if n == 2 {
						print()
					}
					last = string(line)
					print()
				}
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

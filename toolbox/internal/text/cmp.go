// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func cmpFiles(c *applet.Call) error {
	quiet := c.Bool("s,silent", "say nothing")
	list := c.Bool("l,verbose", "print each byte that differs: where it is, and both in octal")
	most := c.Amount("n,bytes", "N", -1, "compare N bytes at most")
	if err := c.Parse(1, 4); err != nil {
		return err
	}
	names := append(c.Args, "-")[:2]
	var from [2]io.ByteReader
	for i, name := range names {
		r, err := c.Open(name)
		if *quiet && errors.Is(err, fs.ErrNotExist) {
			return applet.Exit(2)
		}
		if err != nil {
			return applet.Fail(2, "%w", err)
		}
		defer r.Close()
		if len(c.Args) > 2+i {
			skip, err := applet.ParseAmount(c.Args[2+i])
			if err != nil || skip < 0 {
				return applet.Usage("%q is not a number of bytes to leave out", c.Args[2+i])
			}
			if _, err := io.CopyN(io.Discard, r, skip); err != nil && err != io.EOF {
				return applet.Fail(2, "%w", err)
			}
		}
		from[i] = bufio.NewReaderSize(r, 64<<10)
	}
	return compareBytes(c, names, from, *quiet, *list, *most)
}

func compareBytes(c *applet.Call, names []string, from [2]io.ByteReader, quiet, list bool, most int64) error {
	line, same := 1, true
	for at := int64(1); at-1 != most; at++ {
		x, err1 := from[0].ReadByte()
		y, err2 := from[1].ReadByte()
		for _, err := range []error{err1, err2} {
			if err != nil && err != io.EOF {
				return applet.Fail(2, "%w", err)
			}
		}
		switch {
		case err1 == io.EOF && err2 == io.EOF:
			most = at
		case err1 == io.EOF || err2 == io.EOF:
			short := names[0]
			if err1 == nil {
				short = names[1]
			}
			if !quiet {
				_ = c.Out.Flush()
				fmt.Fprintf(c.Err, "cmp: EOF on %s after byte %d\n", short, at-1)
			}
			return applet.Exit(1)
		case x != y && list && !quiet:
			same = false
			c.Printf("%d %3o %3o\n", at, x, y)
		case x != y:
			if !quiet {
				c.Printf("%s %s differ: char %d, line %d\n", names[0], names[1], at, line)
			}
			return applet.Exit(1)
		}
		if x == '\n' {
			line++
		}
	}
	if !same {
		return applet.Exit(1)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"errors"
	"io"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// errEnough ends the reading of a file: not a failure, so it has the name of none.
var errEnough = errors.New("enough")

// grepFile is the reading of one file.
type grepFile struct {
	*grepper
	name             string
	lineNumber, hits int      // of this line; of matching ones
	last             int      // the number of the last line that was printed
	follow           int      // how many lines are still to be printed as the context of a match
	kept             []string // lines before this one, the context of a match that may come
	binary           bool
}

// read looks for matches in a file, or in standard input.
func (g *grepper) read(name string, r io.Reader) error {
	f := &grepFile{grepper: g, name: name}
	err := applet.Parts(r, g.end, func(line []byte, _ bool) error { return f.next(line) })
	if err == errEnough {
		err = nil
	}
	switch {
	case *g.quiet:
	case *g.list && f.hits > 0, *g.without && f.hits == 0:
		g.hit = true
		g.Println(name)
	case *g.count:
		if g.names {
			g.Printf("%s:", name)
		}
		g.Println(f.hits)
	}
	return err
}

// next looks at the next line.
func (f *grepFile) next(line []byte) error {
	f.lineNumber++
	if !*f.text && f.end != 0 && !f.binary && bytes.IndexByte(line, 0) >= 0 {
		if f.binary = true; *f.noBinary {
			return errEnough
		}
	}
	matches := (f.find(line) != nil) != *f.invert
	if !matches {
		f.context(line)
	} else if err := f.matched(line); err != nil {
		return err
	}
	if f.hits >= f.most && f.follow == 0 {
		return errEnough
	}
	return nil
}

// context prints a line that does not match, or keeps it, if it belongs to one that does.
func (f *grepFile) context(line []byte) {
	switch {
	case f.follow > 0:
		f.follow--
		f.last = f.lineNumber
		f.line(f.name, f.lineNumber, '-', line)
	case f.before > 0:
		if f.kept = append(f.kept, string(line)); len(f.kept) > f.before {
			f.kept = f.kept[1:]
		}
	}
}

// matched prints a line that matches, and what was kept before it.
func (f *grepFile) matched(line []byte) error {
	if f.hits >= f.most {
		return errEnough
	}
	f.hits++
	f.hit = f.hit || !*f.without
	switch {
	case *f.quiet, *f.list, *f.without:
		return errEnough
	case *f.count:
		return nil
	case f.binary:
		f.Printf("Binary file %s matches\n", f.name)
		return errEnough
	}
	if first := f.lineNumber - len(f.kept); f.last > 0 && first > f.last+1 && (f.before > 0 || f.after > 0) {
		f.Println("--")
	}
	for i, k := range f.kept {
		f.line(f.name, f.lineNumber-len(f.kept)+i, '-', []byte(k))
	}
	f.kept, f.follow, f.last = f.kept[:0], f.after, f.lineNumber
	f.found(f.name, f.lineNumber, line)
	return nil
}

func (g *grepper) prefix(name string, n int, sep byte) {
	if g.names {
		g.Printf("%s%c", name, sep)
	}
	if *g.number {
		g.Printf("%d%c", n, sep)
	}
}

func (g *grepper) line(name string, n int, sep byte, line []byte) {
	if *g.only {
		return
	}
	g.prefix(name, n, sep)
	g.Printf("%s%c", line, g.end)
}

func (g *grepper) found(name string, n int, line []byte) {
	if !*g.only && (!g.color || *g.invert) {
		g.line(name, n, ':', line)
		return
	}
	if !*g.only {
		g.prefix(name, n, ':')
	}
	for rest := line; ; {
		at := g.find(rest)
		if at == nil || *g.invert {
			if !*g.only {
				g.Printf("%s%c", rest, g.end)
			}
			return
		}
		mark, end := "", ""
		if g.color {
			mark, end = "\x1b[1;31m", "\x1b[m"
		}
		switch {
		case *g.only && at[1] > at[0]:
			g.prefix(name, n, ':')
			g.Printf("%s%s%s%c", mark, rest[at[0]:at[1]], end, g.end)
		case !*g.only:
			g.Printf("%s%s%s%s", rest[:at[0]], mark, rest[at[0]:at[1]], end)
		}
		if at[1] == at[0] { // an empty match: go on behind the next byte
			if at[1] == len(rest) {
				if !*g.only {
					g.Println()
				}
				return
			}
			if !*g.only {
				g.Printf("%s", rest[at[1]:at[1]+1])
			}
			at[1]++
		}
		rest = rest[at[1]:]
	}
}

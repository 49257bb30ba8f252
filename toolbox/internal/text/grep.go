// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// grepper is one run of grep.
type grepper struct {
	*applet.Call
	match                          []*regexp.Regexp
	invert, only, count, list      *bool
	without, quiet, number, silent *bool
	text, noBinary                 *bool
	names, color, follow           bool
	end                            byte // of a line
	before, after, most            int
	include, exclude, excludeDir   []string
	hit                            bool
}

// errEnough ends the reading of a file: not a failure, so it has the name of none.
var errEnough = errors.New("enough")

func grep(c *applet.Call) error {
	g := &grepper{Call: c}
	extended, fixed := c.Name == "egrep", c.Name == "fgrep"
	c.Do("E,extended-regexp", "extended regular expressions", func() { extended, fixed = true, false })
	c.Do("G,basic-regexp", "basic regular expressions (the default)", func() { extended, fixed = false, false })
	c.Do("P,perl-regexp", "Perl's regular expressions, as far as Go has them", func() { extended, fixed = true, false })
	c.Do("F,fixed-strings", "plain text", func() { fixed = true })
	fold := c.Bool("i,ignore-case", "upper and lower case are the same")
	c.Do("y", "as -i", func() { *fold = true })
	g.invert, g.only = c.Bool("v,invert-match", "lines that do not match"),
		c.Bool("o,only-matching", "the matching parts only")
	g.count, g.list = c.Bool("c,count", "number of lines only"), c.Bool("l,files-with-matches", "names of files only")
	g.without, g.quiet = c.Bool("L,files-without-match", "names of files without one"),
		c.Bool("q,quiet", "exit code only")
	g.number, g.silent = c.Bool("n,line-number", "line numbers"), c.Bool("s,no-messages", "no messages about files")
	word, whole := c.Bool("w,word-regexp", "whole words"), c.Bool("x,line-regexp", "whole lines")
	recursive := c.Bool("r,recursive", "all files below folders")
	c.Do("R,dereference-recursive", "as -r, and what links point to", func() { *recursive, g.follow = true, true })
	g.end = '\n'
	c.Do("z,null-data", "lines end in a byte 0", func() { g.end = 0 })
	with, never := c.Bool("H,with-filename", "file names always"), c.Bool("h,no-filename", "no file names")
	g.text, g.noBinary = c.Bool("a,text", "binary files are text"), c.Bool("I", "leave binary files out")
	after, before := c.Int("A,after-context", "N", -1, "N lines after"),
		c.Int("B,before-context", "N", -1, "N lines before")
	around := c.Int("C,context", "N", 0, "N lines before and after")
	most := c.Int("m,max-count", "N", 1<<62, "stop after N lines of a file")
	patterns := c.Strings("e,regexp", "PATTERN", "pattern; may be repeated")
	files := c.Strings("f,file", "FILE", "patterns, one a line")
	include := c.Strings(",include", "GLOB", "with -r: these files only")
	exclude := c.Strings(",exclude", "GLOB", "with -r: not these files")
	excludeDir := c.Strings(",exclude-dir", "GLOB", "with -r: not these folders")
	color := c.Bool(",color", "mark what matched")
	c.Do(",colour", "as --color", func() { *color = true })
	c.Do(",line-buffered", "write each line at once", func() {})
	for i, a := range c.Args { // --color=auto
		if v, ok := strings.CutPrefix(a, "--color="); ok {
			c.Args[i] = "--line-buffered"
			if _, err := unix.IoctlGetTermios(1, unix.TCGETS); v == "always" || v == "auto" && err == nil {
				*color = true
			}
		}
	}
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if err := g.patterns(*patterns, *files, extended, fixed, *fold, *word, *whole); err != nil {
		return err
	}
	g.before, g.after, g.most, g.color = max(*before, *around*b2i(*before < 0)), max(*after, *around*b2i(*after < 0)),
		*most, *color
	g.include, g.exclude, g.excludeDir = *include, *exclude, *excludeDir
	g.names = (*with || len(c.Args) > 1 || *recursive) && !*never
	switch {
	case len(c.Args) == 0 && *recursive:
		c.Args = []string{""} // this folder, without ./ before the names
	case len(c.Args) == 0:
		c.Args = []string{"-"}
	}
	failed := false
	for _, name := range c.Args {
		if !g.path(name, *recursive) {
			failed = true
		}
		if g.hit && *g.quiet {
			return nil
		}
	}
	switch {
	case failed:
		return applet.Exit(2)
	case g.hit:
		return nil
	}
	return applet.Exit(1)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (g *grepper) patterns(given, files []string, extended, fixed, fold, word, whole bool) error {
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return applet.Fail(2, "%w", err)
		}
		if len(data) > 0 { // an empty file has no pattern, not an empty one
			given = append(given, strings.TrimSuffix(string(data), "\n"))
		}
	}
	if len(given) == 0 && len(files) == 0 {
		if len(g.Args) == 0 {
			return applet.Usage("missing pattern")
		}
		given, g.Args = []string{g.Args[0]}, g.Args[1:]
	}
	for _, p := range given {
		for line := range strings.SplitSeq(p, "\n") {
			text := regexp.QuoteMeta(line)
			if !fixed {
				var err error
				if text, err = translate(line, extended); err != nil {
					return applet.Fail(2, "%w", err)
				}
			}
			if word {
				text = `(?:^|\b)(?:` + text + `)(?:\b|$)`
			}
			if whole {
				text = `^(?:` + text + `)$`
			}
			if fold {
				text = "(?i)" + text
			}
			re, err := regexp.Compile(text)
			if err != nil {
				return applet.Fail(2, "pattern %q: %w", line, err)
			}
			re.Longest()
			g.match = append(g.match, re)
		}
	}
	return nil
}

// path looks into a file or, below a folder, all files.
func (g *grepper) path(name string, recursive bool) bool {
	if name == "-" {
		return g.report(g.read("(standard input)", g.In))
	}
	info, err := os.Stat(cmp.Or(name, "."))
	if err != nil || !info.IsDir() {
		return g.report(g.file(name))
	}
	if !recursive {
		return g.report(fmt.Errorf("%s is a folder: use -r", name))
	}
	return g.folder(name, map[string]bool{})
}

// folder looks into all files below a folder. above are the folders it is in, by their real names, which a link may
// lead back to.
func (g *grepper) folder(name string, above map[string]bool) bool {
	ok := true
	if g.follow {
		real, err := filepath.EvalSymlinks(cmp.Or(name, "."))
		if err != nil || above[real] {
			return g.report(err)
		}
		above = maps.Clone(above)
		above[real] = true
	}
	list, err := os.ReadDir(cmp.Or(name, "."))
	if err != nil {
		ok = g.report(err)
	}
	for _, d := range list {
		path := strings.TrimSuffix(name, "/") + "/" + d.Name()
		if name == "" {
			path = d.Name()
		}
		kind := d.Type()
		if kind&fs.ModeSymlink != 0 && g.follow {
			info, err := os.Stat(path)
			if err != nil {
				ok = g.report(err)
				continue
			}
			kind = info.Mode().Type()
		}
		switch {
		case kind.IsDir() && !globs(g.excludeDir, d.Name()):
			ok = g.folder(path, above) && ok
		case !kind.IsRegular(), len(g.include) > 0 && !globs(g.include, d.Name()), globs(g.exclude, d.Name()):
		default:
			ok = g.report(g.file(path)) && ok
		}
		if g.hit && *g.quiet {
			break
		}
	}
	return ok
}

func globs(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, _ := filepath.Match(p, name); ok {
			return true
		}
	}
	return false
}

func (g *grepper) report(err error) bool {
	if err != nil && !*g.silent {
		g.Warn(err)
	}
	return err == nil
}

func (g *grepper) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return g.read(name, f)
}

// find returns where a line matches.
func (g *grepper) find(line []byte) []int {
	var best []int
	for _, re := range g.match {
		if at := re.FindIndex(line); at != nil && (best == nil || at[0] < best[0] ||
			at[0] == best[0] && at[1] > best[1]) {
			best = at
		}
	}
	return best
}

func (g *grepper) read(name string, r io.Reader) error {
	n, hits, last, follow := 0, 0, 0, 0
	binary := false
	var kept []string
	err := applet.Parts(r, g.end, func(line []byte, _ bool) error {
		n++
		if !*g.text && g.end != 0 && !binary && bytes.IndexByte(line, 0) >= 0 {
			if binary = true; *g.noBinary {
				return errEnough
			}
		}
		at := g.find(line)
		if (at != nil) == *g.invert {
			switch {
			case follow > 0:
				follow--
				last = n
				g.line(name, n, '-', line)
			case g.before > 0:
				if kept = append(kept, string(line)); len(kept) > g.before {
					kept = kept[1:]
				}
			}
			if hits >= g.most && follow == 0 {
				return errEnough
			}
			return nil
		}
		if hits >= g.most {
			return errEnough
		}
		hits++
		g.hit = g.hit || !*g.without
		switch {
		case *g.quiet, *g.list, *g.without:
			return errEnough
		case *g.count:
		case binary:
			g.Printf("Binary file %s matches\n", name)
			return errEnough
		default:
			if first := n - len(kept); last > 0 && first > last+1 && (g.before > 0 || g.after > 0) {
				g.Println("--")
			}
			for i, k := range kept {
				g.line(name, n-len(kept)+i, '-', []byte(k))
			}
			kept, follow, last = kept[:0], g.after, n
			g.found(name, n, line)
		}
		if hits >= g.most && follow == 0 {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	switch {
	case *g.quiet:
	case *g.list && hits > 0, *g.without && hits == 0:
		g.hit = true
		g.Println(name)
	case *g.count:
		if g.names {
			g.Printf("%s:", name)
		}
		g.Println(hits)
	}
	return err
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

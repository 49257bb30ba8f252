// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"fmt"
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

// grepFlags are the flags of grep that it does not keep as they stand.
type grepFlags struct {
	extended, fixed                                   bool
	fold, word, whole, recursive, with, never, color  *bool
	after, before, around, most                       *int
	patterns, files, include, exclude, excludeFolders *[]string
}

func (g *grepper) flags() *grepFlags {
	f := &grepFlags{extended: g.Name == "egrep", fixed: g.Name == "fgrep"}
	g.Do("E,extended-regexp", "extended regular expressions", func() { f.extended, f.fixed = true, false })
	g.Do("G,basic-regexp", "basic regular expressions (the default)", func() { f.extended, f.fixed = false, false })
	g.Do("P,perl-regexp", "Perl's regular expressions, as far as Go has them",
		func() { f.extended, f.fixed = true, false })
	g.Do("F,fixed-strings", "plain text", func() { f.fixed = true })
	f.fold = g.Bool("i,ignore-case", "upper and lower case are the same")
	g.Do("y", "as -i", func() { *f.fold = true })
	g.invert = g.Bool("v,invert-match", "lines that do not match")
	g.only = g.Bool("o,only-matching", "the matching parts only")
	g.count, g.list = g.Bool("c,count", "number of lines only"), g.Bool("l,files-with-matches", "names of files only")
	g.without = g.Bool("L,files-without-match", "names of files without one")
	g.quiet = g.Bool("q,quiet", "exit code only")
	g.number, g.silent = g.Bool("n,line-number", "line numbers"), g.Bool("s,no-messages", "no messages about files")
	f.word, f.whole = g.Bool("w,word-regexp", "whole words"), g.Bool("x,line-regexp", "whole lines")
	f.recursive = g.Bool("r,recursive", "all files below folders")
	g.Do("R,dereference-recursive", "as -r, and what links point to", func() { *f.recursive, g.follow = true, true })
	g.end = '\n'
	g.Do("z,null-data", "lines end in a byte 0", func() { g.end = 0 })
	f.with, f.never = g.Bool("H,with-filename", "file names always"), g.Bool("h,no-filename", "no file names")
	g.text, g.noBinary = g.Bool("a,text", "binary files are text"), g.Bool("I", "leave binary files out")
	f.after = g.Int("A,after-context", "N", -1, "N lines after")
	f.before = g.Int("B,before-context", "N", -1, "N lines before")
	f.around = g.Int("C,context", "N", 0, "N lines before and after")
	f.most = g.Int("m,max-count", "N", 1<<62, "stop after N lines of a file")
	f.patterns = g.Strings("e,regexp", "PATTERN", "pattern; may be repeated")
	f.files = g.Strings("f,file", "FILE", "patterns, one a line")
	f.include = g.Strings(",include", "GLOB", "with -r: these files only")
	f.exclude = g.Strings(",exclude", "GLOB", "with -r: not these files")
	f.excludeFolders = g.Strings(",exclude-dir", "GLOB", "with -r: not these folders")
	f.color = g.Bool(",color", "mark what matched")
	g.Do(",colour", "as --color", func() { *f.color = true })
	g.Do(",line-buffered", "write each line at once", func() {})
	return f
}

// parse reads the flags. --color=WHEN is read first: a switch has no value.
func (g *grepper) parse(f *grepFlags) error {
	for i, a := range g.Args {
		if v, ok := strings.CutPrefix(a, "--color="); ok {
			g.Args[i] = "--line-buffered"
			if _, err := unix.IoctlGetTermios(1, unix.TCGETS); v == "always" || v == "auto" && err == nil {
				*f.color = true
			}
		}
	}
	if err := g.Parse(0, -1); err != nil {
		return err
	}
	g.most, g.color = *f.most, *f.color
	if g.before = *f.before; g.before < 0 {
		g.before = *f.around
	}
	if g.after = *f.after; g.after < 0 {
		g.after = *f.around
	}
	g.include, g.exclude, g.excludeDir = *f.include, *f.exclude, *f.excludeFolders
	return nil
}

func grep(c *applet.Call) error {
	g := &grepper{Call: c}
	f := g.flags()
	if err := g.parse(f); err != nil {
		return err
	}
	if err := g.patterns(f); err != nil {
		return err
	}
	g.names = (*f.with || len(c.Args) > 1 || *f.recursive) && !*f.never
	switch {
	case len(c.Args) == 0 && *f.recursive:
		c.Args = []string{""} // this folder, without ./ before the names
	case len(c.Args) == 0:
		c.Args = []string{"-"}
	}
	failed := false
	for _, name := range c.Args {
		if !g.path(name, *f.recursive) {
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

// patterns compiles the patterns that are given, in files too, or the first argument.
func (g *grepper) patterns(f *grepFlags) error {
	given, files := *f.patterns, *f.files
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
			re, err := f.compile(line)
			if err != nil {
				return err
			}
			g.match = append(g.match, re)
		}
	}
	return nil
}

// compile makes one pattern what the flags say of it.
func (f *grepFlags) compile(pattern string) (*regexp.Regexp, error) {
	text := regexp.QuoteMeta(pattern)
	if !f.fixed {
		var err error
		if text, err = translate(pattern, f.extended); err != nil {
			return nil, applet.Fail(2, "%w", err)
		}
	}
	if *f.word {
		text = `(?:^|\b)(?:` + text + `)(?:\b|$)`
	}
	if *f.whole {
		text = `^(?:` + text + `)$`
	}
	if *f.fold {
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, applet.Fail(2, "pattern %q: %w", pattern, err)
	}
	re.Longest()
	return re, nil
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

// SPDX-License-Identifier: Apache-2.0

package text

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// differ is one run of diff.
type differ struct {
	*applet.Call
	context                                   int
	brief, same, recursive, absent, text      *bool
	foldCase, foldBlanks, noBlanks, blankLine *bool
	expand, indent                            *bool
	labels                                    []string // in place of the files' names
	differs                                   bool
}

// diff prints what two files or folders do not have in common, in the unified format.
func diff(c *applet.Call) error {
	d := &differ{Call: c}
	context := c.Int("U,unified", "N", 3, "N lines around each change")
	c.Bool("u", "does nothing: the format is always that one")
	d.brief, d.same = c.Bool("q,brief", "say only that files differ"),
		c.Bool("s,report-identical-files", "say also that they do not")
	d.recursive, d.absent = c.Bool("r,recursive", "folders with all below them"),
		c.Bool("N,new-file", "a file that is not there is empty")
	d.text, d.foldCase = c.Bool("a,text", "binary files are text"),
		c.Bool("i,ignore-case", "upper and lower case are the same")
	d.foldBlanks, d.noBlanks = c.Bool("b,ignore-space-change", "blanks are as good as one"),
		c.Bool("w,ignore-all-space", "blanks do not count")
	d.blankLine = c.Bool("B,ignore-blank-lines", "empty lines do not count")
	d.expand, d.indent = c.Bool("t,expand-tabs", "print blanks for tabs"),
		c.Bool("T,initial-tab", "print a tab before each line")
	c.Bool("d,minimal", "does nothing: few lines are always looked for")
	labels := c.Strings("L,label", "TEXT", "what to call the first and, if given again, the second file")
	if err := c.Parse(2, 2); err != nil {
		return err
	}
	d.labels = *labels
	d.context = max(*context, 0)
	a, b := c.Args[0], c.Args[1]
	aFolder, bFolder := isFolder(a), isFolder(b)
	var err error
	switch {
	case aFolder && bFolder:
		err = d.folders(a, b)
	case aFolder:
		err = d.files(filepath.Join(a, filepath.Base(b)), b)
	case bFolder:
		err = d.files(a, filepath.Join(b, filepath.Base(a)))
	default:
		err = d.files(a, b)
	}
	if err != nil {
		return applet.Fail(2, "%w", err)
	}
	if d.differs {
		return applet.Exit(1)
	}
	return nil
}

func isFolder(name string) bool {
	st, err := os.Stat(name)
	return name != "-" && err == nil && st.IsDir()
}

// folders compares what is in two folders, by name.
func (d *differ) folders(a, b string) error {
	var names []string
	in := map[string][2]bool{}
	for i, dir := range []string{a, b} {
		list, err := os.ReadDir(dir)
		if err != nil && !(*d.absent && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		for _, e := range list {
			has := in[e.Name()]
			has[i] = true
			in[e.Name()] = has
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, y, has := filepath.Join(a, name), filepath.Join(b, name), in[name]
		aFolder, bFolder := isFolder(x), isFolder(y)
		switch {
		case !*d.absent && (!has[0] || !has[1]):
			only := a
			if !has[0] {
				only = b
			}
			d.differs = true
			d.Printf("Only in %s: %s\n", only, name)
		case (aFolder || bFolder) && (aFolder == bFolder || *d.absent && (!has[0] || !has[1])):
			if *d.recursive {
				if err := d.folders(x, y); err != nil {
					return err
				}
			} else {
				d.Printf("Common subdirectories: %s and %s\n", x, y)
			}
		case aFolder != bFolder:
			d.differs = true
			d.Printf("File %s is a %s while file %s is a %s\n", x, kind(aFolder), y, kind(bFolder))
		default:
			if err := d.files(x, y); err != nil {
				d.Warn(err)
			}
		}
	}
	return nil
}

func kind(folder bool) string {
	if folder {
		return "directory"
	}
	return "regular file"
}

func (d *differ) read(name string) ([]byte, error) {
	r, err := d.Open(name)
	if *d.absent && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// files compares two files.
func (d *differ) files(a, b string) error {
	x, err := d.read(a)
	if err != nil {
		return err
	}
	y, err := d.read(b)
	if err != nil {
		return err
	}
	if bytes.Equal(x, y) {
		if *d.same {
			d.Printf("Files %s and %s are identical\n", a, b)
		}
		return nil
	}
	if !*d.text && (bytes.IndexByte(x, 0) >= 0 || bytes.IndexByte(y, 0) >= 0) {
		d.differs = true
		d.Printf("Binary files %s and %s differ\n", a, b)
		return nil
	}
	before, after := slices.Collect(strings.Lines(string(x))), slices.Collect(strings.Lines(string(y)))
	groups := difflib.NewMatcher(d.keys(before), d.keys(after)).GetGroupedOpCodes(d.context)
	groups = slices.DeleteFunc(groups, func(g []difflib.OpCode) bool {
		return !slices.ContainsFunc(g,
			func(o difflib.OpCode) bool { return o.Tag != 'e' && !d.blank(before[o.I1:o.I2], after[o.J1:o.J2]) })
	})
	if len(groups) == 0 {
		return nil // but for what does not count
	}
	d.differs = true
	if *d.brief {
		d.Printf("Files %s and %s differ\n", a, b)
		return nil
	}
	for i, name := range []string{a, b} {
		if i < len(d.labels) {
			name = d.labels[i]
		}
		d.Printf("%s %s\n", []string{"---", "+++"}[i], name)
	}
	for _, g := range groups {
		d.hunk(g, before, after)
	}
	return nil
}

// hunk prints one group of changes.
func (d *differ) hunk(g []difflib.OpCode, before, after []string) {
	first, last := g[0], g[len(g)-1]
	d.Printf("@@ -%s +%s @@\n", hunkRange(first.I1, last.I2), hunkRange(first.J1, last.J2))
	print := func(mark byte, lines []string) {
		for _, l := range lines {
			if *d.expand {
				l = expandTabs(l)
			}
			if d.Printf("%c", mark); *d.indent {
				d.Printf("\t")
			}
			d.Printf("%s", l)
			if !strings.HasSuffix(l, "\n") {
				d.Printf("\n\\ No newline at end of file\n")
			}
		}
	}
	for _, o := range g {
		if o.Tag == 'e' {
			print(' ', before[o.I1:o.I2])
			continue
		}
		print('-', before[o.I1:o.I2])
		print('+', after[o.J1:o.J2])
	}
}

// hunkRange writes where a hunk stands: the number of its first line, and how many there are if not one.
func hunkRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

// blank tells whether a change does not count: with -B, one of empty lines only.
func (d *differ) blank(changes ...[]string) bool {
	text := func(l string) bool { return strings.TrimRight(l, "\n") != "" }
	return *d.blankLine && !slices.ContainsFunc(slices.Concat(changes...), text)
}

// expandTabs puts blanks in place of tabs: to the next eighth column.
func expandTabs(line string) string {
	var b strings.Builder
	at := 0
	for _, r := range line {
		if r != '\t' {
			b.WriteRune(r)
			at++
			continue
		}
		n := 8 - at%8
		b.WriteString(strings.Repeat(" ", n))
		at += n
	}
	return b.String()
}

// keys are what lines are compared by.
func (d *differ) keys(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if *d.foldCase {
			l = strings.ToLower(l)
		}
		switch {
		case *d.noBlanks:
			l = strings.Join(strings.Fields(l), "")
		case *d.foldBlanks:
			l = strings.TrimRight(strings.Join(strings.Fields(" "+l), " "), " ")
		}
		out[i] = l
	}
	return out
}

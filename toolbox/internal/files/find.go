// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// finder is one run of find.
type finder struct {
	*applet.Call
	names            accounts.Names
	words            []string // of the expression, not yet read
	least, most      int
	quit             bool
	follow           bool // all links
	arguments        bool // links that are arguments
	xdev, deep, acts bool // acts: an action was named, so -print is not implied
	batches          []*batch
}

// found is a file that find looks at.
type found struct {
	path  string
	info  fs.FileInfo
	depth int
	prune bool
}

// test decides about a file, or does something with it.
type test func(*found) bool

// batch collects files for -exec ... {} +.
type batch struct {
	command []string
	files   []string
	size    int
}

const findHelp = `
Tests: -name GLOB, -iname GLOB, -path GLOB, -ipath GLOB, -regex RE, -type [fdlpscb], -size [+-]N[ckMG], -empty,
  -mtime, -atime, -ctime [+-]DAYS, -mmin, -amin, -cmin [+-]MINUTES, -newer FILE, -samefile FILE, -perm [-/]MODE, -user, -group, -uid, -gid,
  -links [+-]N, -inum N, -nouser, -true, -false
Actions: -print (the default), -print0, -ls, -delete, -exec COMMAND {} ';', -exec COMMAND {} +, -prune, -quit
Of all: -maxdepth N, -mindepth N, -xdev, -depth, -L (or -follow), -H
Together: EXPR EXPR, EXPR -a EXPR, EXPR -o EXPR, ! EXPR, ( EXPR )
`

func find(c *applet.Call) error {
	if len(c.Args) > 0 && c.Args[0] == "--help" {
		_ = c.Parse(0, -1)
		c.Printf("%s", findHelp)
		return nil
	}
	f := &finder{Call: c, most: 1 << 30}
	var paths []string
	args := c.Args
	for len(args) > 0 && (args[0] == "-L" || args[0] == "-H" || args[0] == "-P") {
		f.follow, f.arguments, args = args[0] == "-L", args[0] == "-H", args[1:]
	}
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "(" && args[0] != "!" {
		paths, args = append(paths, args[0]), args[1:]
	}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	f.words = args
	match := test(func(*found) bool { return true })
	if len(args) > 0 {
		var err error
		if match, err = f.either(); err != nil {
			return err
		}
		if len(f.words) > 0 {
			return applet.Usage("%q has no beginning", f.words[0])
		}
	}
	if !f.acts {
		inner := match
		match = func(x *found) bool {
			if inner(x) {
				c.Println(x.path)
			}
			return true
		}
	}
	for _, p := range paths {
		look := os.Lstat
		if f.follow || f.arguments {
			look = os.Stat
		}
		info, err := look(p)
		if errors.Is(err, fs.ErrNotExist) {
			info, err = os.Lstat(p) // a link that points nowhere is itself
		}
		if err != nil {
			c.Warn(err)
			continue
		}
		f.visit(&found{path: p, info: info}, match, nil)
	}
	for _, b := range f.batches {
		f.flush(b)
	}
	return nil
}

func (f *finder) visit(x *found, match test, above []fs.FileInfo) {
	if f.quit {
		return
	}
	for _, a := range above {
		if f.follow && os.SameFile(a, x.info) {
			f.Warn(fmt.Errorf("%s: links go round in a circle", x.path))
			return
		}
	}
	if !f.deep && x.depth >= f.least {
		match(x)
	}
	if x.info.IsDir() && !x.prune && x.depth < f.most {
		list, err := os.ReadDir(x.path)
		if err != nil {
			f.Warn(err)
		}
		for _, e := range list {
			path := filepath.Join(x.path, e.Name())
			if strings.HasPrefix(x.path, "./") || x.path == "." {
				path = "./" + path
			}
			info, err := e.Info()
			if f.follow && err == nil && info.Mode()&fs.ModeSymlink != 0 {
				to, e := os.Stat(path)
				if e == nil {
					info = to
				}
				if errors.Is(e, syscall.ELOOP) {
					err = e
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // went away meanwhile
			}
			if err != nil {
				f.Warn(err)
				continue
			}
			if f.xdev && device(info) != device(x.info) {
				continue
			}
			f.visit(&found{path: path, info: info, depth: x.depth + 1}, match, append(above, x.info))
		}
	}
	if f.deep && x.depth >= f.least {
		match(x)
	}
}

func device(i fs.FileInfo) uint64 {
	if st, ok := i.Sys().(*syscall.Stat_t); ok {
		return st.Dev
	}
	return 0
}

// either reads EXPR -o EXPR.
func (f *finder) either() (test, error) {
	left, err := f.both()
	for err == nil && len(f.words) > 0 && (f.words[0] == "-o" || f.words[0] == "-or") {
		f.words = f.words[1:]
		var right test
		if right, err = f.both(); err == nil {
			a := left
			left = func(x *found) bool { return a(x) || right(x) }
		}
	}
	return left, err
}

// both reads EXPR [-a] EXPR.
func (f *finder) both() (test, error) {
	left, err := f.not()
	for err == nil && len(f.words) > 0 && f.words[0] != "-o" && f.words[0] != "-or" && f.words[0] != ")" {
		if f.words[0] == "-a" || f.words[0] == "-and" {
			f.words = f.words[1:]
		}
		var right test
		if right, err = f.not(); err == nil {
			a := left
			left = func(x *found) bool { return a(x) && right(x) }
		}
	}
	return left, err
}

func (f *finder) not() (test, error) {
	if len(f.words) == 0 {
		return nil, applet.Usage("the expression ends too early")
	}
	word := f.words[0]
	f.words = f.words[1:]
	switch word {
	case "!", "-not":
		t, err := f.not()
		return func(x *found) bool { return !t(x) }, err
	case "(":
		t, err := f.either()
		if err == nil && (len(f.words) == 0 || f.words[0] != ")") {
			return nil, applet.Usage("a ) is missing")
		}
		if err == nil {
			f.words = f.words[1:]
		}
		return t, err
	}
	if t, ok, err := f.action(word); ok || err != nil {
		return t, err
	}
	return f.primary(word)
}

// value takes the value of a test.
func (f *finder) value(word string) (string, error) {
	if len(f.words) == 0 {
		return "", applet.Usage("%s needs a value", word)
	}
	v := f.words[0]
	f.words = f.words[1:]
	return v, nil
}

// action reads what does something.
func (f *finder) action(word string) (t test, ok bool, err error) {
	yes := func(*found) bool { return true }
	switch word {
	case "-print":
		t = func(x *found) bool { f.Println(x.path); return true }
	case "-print0":
		t = func(x *found) bool { f.Printf("%s\x00", x.path); return true }
	case "-ls":
		l := &lister{Call: f.Call}
		off, on := false, true
		l.long, l.inode, l.numeric, l.human, l.classify, l.full = &on, &on, &off, &off, &off, &off
		l.noOwner, l.blocks = &off, &off
		t = func(x *found) bool { l.table([]entry{{x.path, x.path, x.info}}, false); return true }
	case "-delete":
		f.deep = true
		t = func(x *found) bool {
			if x.path == "." {
				return true
			}
			err := os.Remove(x.path)
			if err != nil {
				f.Warn(err)
			}
			return err == nil
		}
	case "-exec":
		t, err = f.exec()
	case "-quit":
		t = func(*found) bool { f.quit = true; return true }
	case "-prune":
		return func(x *found) bool { x.prune = true; return true }, true, nil
	case "-follow":
		f.follow = true
		return yes, true, nil
	case "-xdev", "-mount":
		f.xdev = true
		return yes, true, nil
	case "-depth":
		f.deep = true
		return yes, true, nil
	case "-maxdepth", "-mindepth":
		v, err := f.value(word)
		n := 0
		if _, e := fmt.Sscanf(v, "%d", &n); err == nil && e != nil {
			err = applet.Usage("%s: %q is not a whole number", word, v)
		}
		if word == "-maxdepth" {
			f.most = n
		} else {
			f.least = n
		}
		return yes, true, err
	default:
		return nil, false, nil
	}
	f.acts = true
	return t, true, err
}

// exec reads -exec COMMAND... ; or + and makes it a test.
func (f *finder) exec() (test, error) {
	var command []string
	for i, w := range f.words {
		if w == ";" || w == "+" && i > 0 && f.words[i-1] == "{}" {
			command, f.words = f.words[:i], f.words[i+1:]
			if len(command) == 0 {
				return nil, applet.Usage("-exec needs a command")
			}
			if w == ";" {
				return func(x *found) bool { return f.command(command, x.path) }, nil
			}
			b := &batch{command: command[:len(command)-1]}
			f.batches = append(f.batches, b)
			return func(x *found) bool {
				b.files = append(b.files, x.path)
				if b.size += len(x.path) + 1; b.size > 100<<10 {
					f.flush(b)
				}
				return true
			}, nil
		}
	}
	return nil, applet.Usage("-exec needs a ; or a {} + at its end")
}

func (f *finder) flush(b *batch) {
	if len(b.files) == 0 {
		return
	}
	if !f.run(append(append([]string{}, b.command...), b.files...)) {
		f.Failed()
	}
	b.files, b.size = nil, 0
}

func (f *finder) command(words []string, path string) bool {
	args := make([]string, len(words))
	for i, w := range words {
		args[i] = strings.ReplaceAll(w, "{}", path)
	}
	return f.run(args)
}

func (f *finder) run(args []string) bool {
	_ = f.Out.Flush()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintf(f.Err, "%s: %s\n", f.Name, applet.Plain(err.Error())) // the test is false; find goes on
	}
	return err == nil
}

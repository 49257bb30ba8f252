// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// lister is one run of ls.
type lister struct {
	*applet.Call
	names                              accounts.Names
	all, almost, long, human, one, dir *bool
	recursive, byTime, bySize, reverse *bool
	classify, inode, numeric, follow   *bool
	full, noOwner, blocks              *bool
	order                              byte // by which letter names are sorted: X, v, or none
	age                                byte // which time counts: u, c, or that of the change
	titled                             bool // folders get a title line
	began                              bool // something was printed
	width                              int  // of the terminal; 0 is one name per line
	slash, across                      bool // mark folders; columns go across
}

// entry is a line of a listing.
type entry struct {
	name, path string
	info       fs.FileInfo
}

func ls(c *applet.Call) error {
	c.Ignore(",color", "does nothing: there are no colours")
	l := &lister{
		Call:   c,
		all:    c.Bool("a,all", "show names that begin with a dot"),
		almost: c.Bool("A,almost-all", "as -a, without . and .."), long: c.Bool("l", "long listing"),
		human: c.Bool("h,human-readable", "with -l: sizes as 1.5K"), one: c.Bool("1", "one name per line"),
		dir: c.Bool("d,directory",
			"show folders themselves, not what is in them"),
		recursive: c.Bool("R,recursive", "go into folders"), byTime: c.Bool("t", "newest first"),
		bySize: c.Bool("S", "largest first"), reverse: c.Bool("r,reverse", "reverse the order"),
		classify: c.Bool("F,classify", "mark folders /, programs *, links @"),
		inode:    c.Bool("i,inode", "show inode numbers"), numeric: c.Bool("n,numeric-uid-gid",
			"as -l, with numbers for owners"),
		follow: c.Bool("L,dereference", "show what links point to"),
		full:   c.Bool(",full-time", "as -l, with whole times"),
	}
	l.noOwner, l.blocks = c.Bool("g", "as -l, without owners"),
		c.Bool("s,size", "show sizes on the disk, in units of 1024 bytes")
	c.Do("X", "sort by what is behind the last dot", func() { l.order = 'X' })
	c.Do("v", "sort numbers in names by what they are worth", func() { l.order = 'v' })
	c.Do("u", "show the time of reading, and sort by it", func() { l.age = 'u' })
	c.Do("c", "show the time at which the status changed, and sort by it", func() { l.age = 'c' })
	slash := c.Bool("p", "mark folders /")
	down, across := c.Bool("C", "columns, going down"), c.Bool("x", "columns, going across")
	width := c.Int("w,width", "N", 80, "how wide columns are together")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	l.slash, l.across = *slash, *across
	if *down || *across {
		l.width = max(1, *width)
	}
	if l.age != 0 && !*l.long {
		*l.byTime = true
	}
	if *l.numeric || *l.full || *l.noOwner {
		*l.long = true
	}
	if size, err := unix.IoctlGetWinsize(1, unix.TIOCGWINSZ); err == nil && !*l.one && !*l.long {
		l.width = max(int(size.Col), 20)
	}
	if len(c.Args) == 0 {
		c.Args = []string{"."}
	}
	l.run(c.Args)
	return nil
}

func (l *lister) run(args []string) {
	var plain, dirs []entry
	for _, arg := range args {
		info, err := os.Lstat(arg)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && (!*l.long && !*l.dir || *l.follow) {
			to, e := os.Stat(arg)
			switch {
			case e == nil:
				info = to
			case *l.follow || !errors.Is(e, fs.ErrNotExist):
				err = e
			}
		}
		switch {
		case err != nil:
			l.Warn(err)
		case info.IsDir() && !*l.dir:
			dirs = append(dirs, entry{arg, arg, info})
		default:
			plain = append(plain, entry{arg, arg, info})
		}
	}
	l.sort(plain)
	l.print(plain, false)
	l.sort(dirs)
	l.titled = len(args) > 1 || *l.recursive
	for _, d := range dirs {
		l.folder(d.path)
	}
}

func (l *lister) folder(path string) {
	found, err := os.ReadDir(path)
	if err != nil {
		l.Warn(err)
	}
	var list []entry
	if *l.all {
		for _, dot := range []string{".", ".."} {
			if info, err := os.Lstat(filepath.Join(path, dot)); err == nil {
				list = append(list, entry{dot, filepath.Join(path, dot), info})
			}
		}
	}
	for _, f := range found {
		if strings.HasPrefix(f.Name(), ".") && !*l.all && !*l.almost {
			continue
		}
		full := filepath.Join(path, f.Name())
		if path == "." || strings.HasPrefix(path, "./") {
			full = "./" + full
		}
		info, err := f.Info()
		if *l.follow && err == nil {
			if to, e := os.Stat(full); e == nil {
				info = to
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // went away meanwhile
		}
		if err != nil {
			l.Warn(err)
			continue
		}
		list = append(list, entry{f.Name(), full, info})
	}
	l.sort(list)
	if l.titled {
		if l.began {
			l.Println()
		}
		l.Printf("%s:\n", path)
		l.began = true
	}
	l.print(list, true)
	if !*l.recursive {
		return
	}
	for _, e := range list {
		if e.info.IsDir() && e.name != "." && e.name != ".." {
			l.folder(e.path)
		}
	}
}

func (l *lister) print(list []entry, inFolder bool) {
	if len(list) > 0 {
		l.began = true
	}
	if *l.long {
		l.table(list, inFolder)
		return
	}
	if inFolder && *l.blocks {
		l.total(list)
	}
	names, spaces := make([]string, len(list)), l.spaces(list)
	for i, e := range list {
		if *l.inode {
			names[i] = fmt.Sprintf("%d ", inode(e.info))
		}
		if *l.blocks {
			names[i] += spaces[i]
		}
		names[i] += e.name + l.mark(e)
	}
	if l.width == 0 {
		for _, n := range names {
			l.Println(n)
		}
		return
	}
	l.columns(names)
}

// columns fills a terminal's width, going down first.
func (l *lister) columns(names []string) {
	widest := 0
	for _, n := range names {
		widest = max(widest, utf8.RuneCountInString(n))
	}
	across := max(1, (l.width+2)/(widest+2))
	rows := (len(names) + across - 1) / across
	if l.across {
		for i, n := range names {
			last := i%across == across-1 || i == len(names)-1
			l.Printf("%s", n)
			if last {
				l.Println()
			} else {
				l.Printf("%*s", widest+2-utf8.RuneCountInString(n), "")
			}
		}
		return
	}
	for r := range rows {
		for i := r; i < len(names); i += rows {
			l.Printf("%s", names[i])
			if i+rows < len(names) {
				l.Printf("%*s", widest+2-utf8.RuneCountInString(names[i]), "")
			}
		}
		l.Println()
	}
}

func (l *lister) table(list []entry, total bool) {
	var rows [][]string
	spaces := l.spaces(list)
	for i, e := range list {
		st, ok := e.info.Sys().(*syscall.Stat_t)
		if !ok {
			st = &syscall.Stat_t{}
		}
		owner, group := fmt.Sprint(st.Uid), fmt.Sprint(st.Gid)
		if !*l.numeric {
			owner, group = l.names.User(int(st.Uid)), l.names.Group(int(st.Gid))
		}
		size := fmt.Sprint(e.info.Size())
		switch {
		case e.info.Mode()&fs.ModeDevice != 0:
			size = fmt.Sprintf("%d, %d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
		case *l.human:
			size = applet.Human(e.info.Size())
		}
		name := e.name + l.mark(e)
		if e.info.Mode()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(e.path)
			name = e.name + " -> " + to
		}
		row := []string{Mode(e.info.Mode()), fmt.Sprint(st.Nlink), owner, group, size, l.when(l.time(e.info)), name}
		if *l.inode {
			row[0] = fmt.Sprintf("%8d %s", st.Ino, row[0])
		}
		if *l.blocks {
			row[0] = spaces[i] + row[0]
		}
		rows = append(rows, row)
	}
	if total {
		l.total(list)
	}
	var w [6]int
	for _, r := range rows {
		for i := range w {
			w[i] = max(w[i], utf8.RuneCountInString(r[i]))
		}
	}
	for _, r := range rows {
		if *l.noOwner {
			l.Printf("%-*s %*s %-*s %*s %s %s\n", w[0], r[0], w[1], r[1], w[3], r[3], w[4], r[4], r[5], r[6])
			continue
		}
		l.Printf("%-*s %*s %-*s %-*s %*s %s %s\n", w[0], r[0], w[1], r[1], w[2], r[2], w[3], r[3], w[4], r[4], r[5],
			r[6])
	}
}

func (l *lister) when(t time.Time) string {
	if *l.full {
		return t.Format("2006-01-02 15:04:05.000000000 -0700")
	}
	if age := time.Since(t); age > 182*24*time.Hour || age < -time.Hour {
		return t.Format("Jan _2  2006")
	}
	return t.Format("Jan _2 15:04")
}

func (l *lister) mark(e entry) string {
	if l.slash && e.info.IsDir() {
		return "/"
	}
	if !*l.classify {
		return ""
	}
	switch m := e.info.Mode(); {
	case m.IsDir():
		return "/"
	case m&fs.ModeSymlink != 0 && !*l.long:
		return "@"
	case m&fs.ModeNamedPipe != 0:
		return "|"
	case m&fs.ModeSocket != 0:
		return "="
	case m.IsRegular() && m&0o111 != 0:
		return "*"
	}
	return ""
}

func inode(i fs.FileInfo) uint64 {
	if st, ok := i.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// Mode words permissions as ls -l does.
func Mode(m fs.FileMode) string {
	out := []byte("?rwxrwxrwx")
	switch {
	case m.IsRegular():
		out[0] = '-'
	case m.IsDir():
		out[0] = 'd'
	case m&fs.ModeSymlink != 0:
		out[0] = 'l'
	case m&fs.ModeCharDevice != 0:
		out[0] = 'c'
	case m&fs.ModeDevice != 0:
		out[0] = 'b'
	case m&fs.ModeNamedPipe != 0:
		out[0] = 'p'
	case m&fs.ModeSocket != 0:
		out[0] = 's'
	}
	for i := range 9 {
		if m&(1<<(8-i)) == 0 {
			out[1+i] = '-'
		}
	}
	special := func(at int, bit fs.FileMode, letter byte) {
		if m&bit == 0 {
			return
		}
		if out[at] == '-' {
			letter -= 'a' - 'A'
		}
		out[at] = letter
	}
	special(3, fs.ModeSetuid, 's')
	special(6, fs.ModeSetgid, 's')
	special(9, fs.ModeSticky, 't')
	return string(out)
}

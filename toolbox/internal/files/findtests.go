// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// primary reads a test of find.
func (f *finder) primary(word string) (test, error) {
	switch word {
	case "-true":
		return func(*found) bool { return true }, nil
	case "-false":
		return func(*found) bool { return false }, nil
	case "-empty":
		return empty, nil
	case "-nouser":
		return func(x *found) bool { return f.names.User(int(status(x).Uid)) == strconv.Itoa(int(status(x).Uid)) }, nil
	}
	if !strings.HasPrefix(word, "-") {
		return nil, applet.Usage("%q is not a test; folders come first", word)
	}
	read, ok := f.tests()[word]
	if !ok {
		return nil, applet.Usage("unknown test or action %s", word)
	}
	v, err := f.value(word)
	if err != nil {
		return nil, err
	}
	t, err := read(v)
	if err != nil {
		return nil, applet.Usage("%s %s: %v", word, v, err)
	}
	return t, nil
}

// tests are those that take a value.
func (f *finder) tests() map[string]func(string) (test, error) {
	glob := func(fold bool, of func(*found) string) func(string) (test, error) {
		return func(pattern string) (test, error) {
			re, err := globExpr(pattern, fold)
			return func(x *found) bool { return re.MatchString(of(x)) }, err
		}
	}
	base := func(x *found) string { return filepath.Base(x.path) }
	whole := func(x *found) string { return x.path }
	age := func(unit time.Duration, of func(*syscall.Stat_t) syscall.Timespec) func(string) (test, error) {
		now := time.Now()
		return func(v string) (test, error) {
			is, err := number(v)
			return func(x *found) bool {
				t := of(status(x))
				return is(int64(now.Sub(time.Unix(t.Sec, t.Nsec)) / unit))
			}, err
		}
	}
	count := func(of func(*found) int64) func(string) (test, error) {
		return func(v string) (test, error) {
			is, err := number(v)
			return func(x *found) bool { return is(of(x)) }, err
		}
	}
	day := 24 * time.Hour
	mtime := func(s *syscall.Stat_t) syscall.Timespec { return s.Mtim }
	atime := func(s *syscall.Stat_t) syscall.Timespec { return s.Atim }
	ctime := func(s *syscall.Stat_t) syscall.Timespec { return s.Ctim }
	return map[string]func(string) (test, error){
		"-name": glob(false, base), "-iname": glob(true, base), "-path": glob(false, whole),
		"-ipath": glob(true, whole), "-wholename": glob(false, whole), "-type": kindTest, "-size": sizeTest,
		"-perm": permTest, "-mtime": age(day, mtime), "-atime": age(day, atime), "-ctime": age(day, ctime),
		"-mmin": age(time.Minute, mtime), "-amin": age(time.Minute, atime), "-cmin": age(time.Minute, ctime),
		"-links": count(func(x *found) int64 { return int64(status(x).Nlink) }),
		"-inum":  count(func(x *found) int64 { return int64(status(x).Ino) }),
		"-uid":   count(func(x *found) int64 { return int64(status(x).Uid) }),
		"-gid":   count(func(x *found) int64 { return int64(status(x).Gid) }),
		"-regex": func(v string) (test, error) {
			re, err := regexp.Compile("^(?:" + v + ")$")
			return func(x *found) bool { return re.MatchString(x.path) }, err
		},
		"-newer": func(v string) (test, error) {
			info, err := os.Stat(v)
			return func(x *found) bool { return x.info.ModTime().After(info.ModTime()) }, err
		},
		"-samefile": func(v string) (test, error) {
			info, err := os.Lstat(v)
			return func(x *found) bool { return os.SameFile(x.info, info) }, err
		},
		"-user": func(v string) (test, error) {
			u, err := f.names.Find(v)
			return func(x *found) bool { return int(status(x).Uid) == u.UID }, err
		},
		"-group": func(v string) (test, error) {
			gid, err := f.names.FindGroup(v)
			return func(x *found) bool { return int(status(x).Gid) == gid }, err
		},
	}
}

func status(x *found) *syscall.Stat_t {
	if st, ok := x.info.Sys().(*syscall.Stat_t); ok {
		return st
	}
	return &syscall.Stat_t{}
}

func empty(x *found) bool {
	if x.info.IsDir() {
		f, err := os.Open(x.path)
		if err != nil {
			return false
		}
		defer f.Close()
		names, _ := f.Readdirnames(1)
		return len(names) == 0
	}
	return x.info.Mode().IsRegular() && x.info.Size() == 0
}

// number reads N, +N (more) or -N (less).
func number(v string) (func(int64) bool, error) {
	n, err := strconv.ParseInt(strings.TrimLeft(v, "+-"), 10, 64)
	switch {
	case strings.HasPrefix(v, "+"):
		return func(x int64) bool { return x > n }, err
	case strings.HasPrefix(v, "-"):
		return func(x int64) bool { return x < n }, err
	}
	return func(x int64) bool { return x == n }, err
}

func sizeTest(v string) (test, error) {
	unit := int64(512)
	switch v[max(0, len(v)-1):] {
	case "c":
		unit = 1
	case "k":
		unit = 1 << 10
	case "M":
		unit = 1 << 20
	case "G":
		unit = 1 << 30
	}
	is, err := number(strings.TrimRight(v, "bckMG"))
	return func(x *found) bool { return is((x.info.Size() + unit - 1) / unit) }, err
}

func kindTest(v string) (test, error) {
	for kind := range strings.SplitSeq(v, ",") {
		if len(kind) != 1 || !strings.Contains("fdlpscb", kind) {
			return nil, applet.Usage("want one of f d l p s c b")
		}
	}
	return func(x *found) bool {
		letter := Mode(x.info.Mode())[:1]
		if letter == "-" {
			letter = "f"
		}
		return strings.Contains(v, letter)
	}, nil
}

func permTest(v string) (test, error) {
	how := v[:min(1, len(v))]
	change, err := ParseMode(strings.TrimLeft(v, "-/"), 0)
	if err != nil {
		return nil, err
	}
	want := change(0, false)
	return func(x *found) bool {
		switch have := bits(x.info.Mode()); how {
		case "-":
			return have&want == want
		case "/":
			return want == 0 || have&want != 0
		default:
			return have == want
		}
	}, nil
}

// globExpr turns a shell pattern, in which * matches slashes too, into a regular expression.
func globExpr(pattern string, fold bool) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("(?s")
	if fold {
		b.WriteString("i")
	}
	b.WriteString(")^")
	for i := 0; i < len(pattern); i++ {
		switch ch := pattern[i]; ch {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '[':
			end := strings.IndexByte(pattern[min(i+2, len(pattern)):], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			class := pattern[i+1 : i+2+end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(class, `\`, `\\`) + "]")
			i += 2 + end
		case '\\':
			if i+1 < len(pattern) {
				i++
			}
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	b.WriteString("$")
	return regexp.Compile(b.String())
}

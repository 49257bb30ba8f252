// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// tester is one run of test or [. It decides by how many words there are, as POSIX has it: so what is compared may look
// like an operator, as in [ "$1" = -d ]. The interpreter's own reads such words as operators.
type tester struct {
	s  *session
	hc interp.HandlerContext
}

// wrong is what is no test. It ends test with 2, which is neither yes nor no.
type wrong string

func (w wrong) Error() string { return string(w) }

// test runs test and [, and says what is wrong.
func (s *session) test(hc interp.HandlerContext, name string, args []string) int {
	err := error(wrong("] is missing at the end"))
	is := false
	if name == "test" || len(args) > 0 && args[len(args)-1] == "]" {
		if name == "[" {
			args = args[:len(args)-1]
		}
		is, err = (&tester{s, hc}).by(args)
	}
	switch {
	case err != nil:
		fmt.Fprintf(hc.Stderr, "%s: %v\n", name, err)
		return 2
	case is:
		return 0
	}
	return 1
}

// asksOption tells whether a test is one of an option of the shell, such as [ -o errexit ]: the interpreter knows
// those.
func asksOption(args []string) bool {
	if len(args) > 0 && args[len(args)-1] == "]" {
		args = args[:len(args)-1]
	}
	if len(args) == 3 && args[0] == "!" {
		args = args[1:]
	}
	return len(args) == 2 && args[0] == "-o"
}

// by decides by the number of words.
func (t *tester) by(args []string) (bool, error) {
	switch n := len(args); {
	case n == 0:
		return false, nil
	case n == 1:
		return args[0] != "", nil
	case n == 3 && isBinary(args[1]):
		return t.binary(args[1], args[0], args[2])
	case n <= 4 && args[0] == "!":
		is, err := t.by(args[1:])
		return !is, err
	case (n == 3 || n == 4) && args[0] == "(" && args[n-1] == ")":
		return t.by(args[1 : n-1])
	case n == 2:
		return t.unary(args[0], args[1])
	}
	is, rest, err := t.either(args)
	if err == nil && len(rest) > 0 {
		err = wrong(fmt.Sprintf("%s: an operator was expected", rest[0]))
	}
	return is, err
}

// either is what -o joins, of which the first that holds is enough. rest is what follows it.
func (t *tester) either(args []string) (is bool, rest []string, err error) {
	is, rest, err = t.both(args)
	for err == nil && len(rest) > 0 && rest[0] == "-o" {
		var more bool
		more, rest, err = t.both(rest[1:])
		is = is || more
	}
	return is, rest, err
}

// both is what -a joins.
func (t *tester) both(args []string) (is bool, rest []string, err error) {
	is, rest, err = t.one(args)
	for err == nil && len(rest) > 0 && rest[0] == "-a" {
		var more bool
		more, rest, err = t.one(rest[1:])
		is = is && more
	}
	return is, rest, err
}

// one is a single test within a longer one.
func (t *tester) one(args []string) (is bool, rest []string, err error) {
	switch {
	case len(args) == 0:
		return false, nil, wrong("a word is missing at the end")
	case len(args) > 2 && isBinary(args[1]) && args[1] != "-a" && args[1] != "-o":
		is, err = t.binary(args[1], args[0], args[2])
		return is, args[3:], err
	case args[0] == "!" && len(args) > 1:
		is, rest, err = t.one(args[1:])
		return !is, rest, err
	case args[0] == "(" && len(args) > 1:
		is, rest, err = t.either(args[1:])
		if err == nil && (len(rest) == 0 || rest[0] != ")") {
			return false, nil, wrong(") is missing")
		} else if err == nil {
			rest = rest[1:]
		}
		return is, rest, err
	case len(args) > 1 && isUnary(args[0]):
		is, err = t.unary(args[0], args[1])
		return is, args[2:], err
	}
	return args[0] != "", args[1:], nil
}

func isBinary(word string) bool {
	return slices.Contains([]string{"=", "==", "!=", "<", ">", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge",
		"-nt", "-ot", "-ef"}, word)
}

func isUnary(word string) bool {
	return len(word) == 2 && word[0] == '-' && strings.Contains("abcdefghkLnNOGprsStuvwxz", word[1:])
}

func (t *tester) binary(op, x, y string) (bool, error) {
	switch op {
	case "=", "==":
		return x == y, nil
	case "!=":
		return x != y, nil
	case "<":
		return x < y, nil
	case ">":
		return x > y, nil
	case "-a":
		return x != "" && y != "", nil
	case "-o":
		return x != "" || y != "", nil
	case "-nt":
		return t.newer(x, y), nil
	case "-ot":
		return t.newer(y, x), nil
	case "-ef":
		a, errA := t.stat(x)
		b, errB := t.stat(y)
		return errA == nil && errB == nil && os.SameFile(a, b), nil
	}
	a, errA := number(x)
	b, errB := number(y)
	if err := errors.Join(errA, errB); err != nil {
		return false, wrong(strings.ReplaceAll(err.Error(), "\n", ", "))
	}
	return map[string]bool{"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[op],
		nil
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.Trim(text, blanks), 10, 64)
	if err != nil {
		return 0, wrong(fmt.Sprintf("%q is not a number", text))
	}
	return n, nil
}

// newer tells whether a file is newer than another one, which need not be there.
func (t *tester) newer(x, y string) bool {
	a, err := t.stat(x)
	if err != nil {
		return false
	}
	b, err := t.stat(y)
	return err != nil || a.ModTime().After(b.ModTime())
}

func (t *tester) unary(op, x string) (bool, error) {
	if !isUnary(op) {
		return false, wrong(op + ": an operator was expected")
	}
	switch op {
	case "-n":
		return x != "", nil
	case "-z":
		return x == "", nil
	case "-v":
		return t.hc.Env.Get(x).IsSet(), nil
	case "-t":
		n, err := number(x)
		if err != nil {
			return false, err
		}
		f := t.s.files.at(t.hc, int(n))
		if f == nil {
			return false, nil
		}
		_, err = unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		return err == nil, nil
	case "-r":
		return t.may(x, unix.R_OK), nil
	case "-w":
		return t.may(x, unix.W_OK), nil
	case "-x":
		return t.may(x, unix.X_OK), nil
	case "-h", "-L":
		info, err := os.Lstat(t.path(x))
		return err == nil && info.Mode()&fs.ModeSymlink != 0, nil
	}
	info, err := t.stat(x)
	return err == nil && ofKind(op, info), nil
}

// ofKind tells whether a file that is there is what an operator asks for.
func ofKind(op string, info fs.FileInfo) bool {
	stat, _ := info.Sys().(*syscall.Stat_t)
	switch op {
	case "-f":
		return info.Mode().IsRegular()
	case "-d":
		return info.IsDir()
	case "-s":
		return info.Size() > 0
	case "-O":
		return stat != nil && int(stat.Uid) == os.Geteuid()
	case "-G":
		return stat != nil && int(stat.Gid) == os.Getegid()
	case "-N":
		return stat != nil && info.ModTime().UnixNano() > stat.Atim.Nano()
	case "-b":
		return info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0
	}
	mode, known := map[string]fs.FileMode{"-c": fs.ModeCharDevice, "-p": fs.ModeNamedPipe, "-S": fs.ModeSocket,
		"-k": fs.ModeSticky, "-u": fs.ModeSetuid, "-g": fs.ModeSetgid}[op]
	return !known || info.Mode()&mode != 0 // -a and -e ask for no more than that
}

func (t *tester) path(name string) string {
	if name != "" && !filepath.IsAbs(name) {
		return filepath.Join(t.hc.Dir, name)
	}
	return name
}

// stat looks at a file. The names of descriptors are those of the shell, which may be others than this process's.
func (t *tester) stat(name string) (fs.FileInfo, error) {
	if n := descriptorOf(name); n >= 0 {
		if f := t.s.files.at(t.hc, n); f != nil {
			return f.Stat()
		}
	}
	return os.Stat(t.path(name))
}

// may tells whether this process may do something with a file.
func (t *tester) may(name string, what uint32) bool {
	return unix.Faccessat(unix.AT_FDCWD, t.path(name), what, unix.AT_EACCESS) == nil
}

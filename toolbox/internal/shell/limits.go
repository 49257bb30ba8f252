// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// limit is one that the kernel keeps of a process.
type limit struct {
	letter   byte
	resource int
	unit     uint64
	name     string
}

func allLimits() []limit {
	return []limit{
		{'c', unix.RLIMIT_CORE, 512, "core file (blocks)"},
		{'d', unix.RLIMIT_DATA, 1024, "data (kB)"},
		{'f', unix.RLIMIT_FSIZE, 512, "file (blocks)"},
		{'l', unix.RLIMIT_MEMLOCK, 1024, "locked memory (kB)"},
		{'n', unix.RLIMIT_NOFILE, 1, "open files"},
		{'s', unix.RLIMIT_STACK, 1024, "stack (kB)"},
		{'t', unix.RLIMIT_CPU, 1, "time (s)"},
		{'u', unix.RLIMIT_NPROC, 1, "processes"},
		{'v', unix.RLIMIT_AS, 1024, "memory (kB)"},
	}
}

// limits is ulimit, which shows a limit of the processes or sets it: the soft and the hard one, unless it is told
// which, and in a subshell the soft one.
func (s *session) limits(hc interp.HandlerContext, args []string) int {
	which, all, soft, hard := byte('f'), false, false, false
	for ; len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-'; args = args[1:] {
		for _, letter := range []byte(args[0][1:]) {
			switch letter {
			case 'S':
				soft = true
			case 'H':
				hard = true
			case 'a':
				all = true
			default:
				which = letter
			}
		}
	}
	for _, l := range allLimits() {
		switch {
		case all:
			fmt.Fprintf(hc.Stdout, "-%c %-20s %s\n", l.letter, l.name, l.shown(hard))
		case l.letter == which && len(args) == 0:
			fmt.Fprintln(hc.Stdout, l.shown(hard))
			return 0
		case l.letter == which && len(args) == 1:
			return s.limitTo(hc, l, args[0], soft || !hard, hard || !soft && s.isShell(hc))
		}
	}
	if !all {
		io.WriteString(hc.Stderr, "ulimit: -a shows which limits there are; -S and -H are the soft and the hard one\n")
		return 2
	}
	return 0
}

func (l limit) shown(hard bool) string {
	var r unix.Rlimit
	if err := unix.Getrlimit(l.resource, &r); err != nil {
		return err.Error()
	}
	if hard {
		r.Cur = r.Max
	}
	if r.Cur == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(r.Cur/l.unit, 10)
}

// limitTo sets a limit. A subshell's is its own, which can be given back as long as it is the soft one.
func (s *session) limitTo(hc interp.HandlerContext, l limit, text string, soft, hard bool) int {
	to := uint64(unix.RLIM_INFINITY)
	n, err := strconv.ParseUint(text, 10, 54)
	if err == nil {
		to = n * l.unit
	}
	var was unix.Rlimit
	if text == "unlimited" || err == nil {
		err = unix.Getrlimit(l.resource, &was)
	}
	now := was
	if soft {
		now.Cur = to
	}
	if hard {
		now.Max = to
	}
	if err == nil {
		err = unix.Setrlimit(l.resource, &now)
	}
	if err != nil {
		fmt.Fprintf(hc.Stderr, "ulimit: -%c %s: %s\n", l.letter, text,
			strings.TrimPrefix(err.Error(), "strconv.ParseUint: "))
		return 1
	}
	s.files.atEnd(hc, "ulimit "+string(l.letter), func() { _ = unix.Setrlimit(l.resource, &was) }) // otherwise it stays
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"

	"github.com/wherryproject/wherry/toolbox/internal/files"
)

// replaced tells whether a builtin of the interpreter is one of ours, which it is behind "command", too.
func replaced(name string) bool {
	return slices.Contains([]string{"cd", "help", "kill", "jobs", "fg", "bg", "wait", "disown", "history", "trap",
		"read", "eval", "exec", "source", ".", "exit", "return", "umask", "ulimit", "test", "[",
		"getopts", "shift", "set", "type"}, name)
}

// changeDir is cd with its options, which the interpreter's has none of: -L, -P and what ends them.
func changeDir(hc interp.HandlerContext, args []string) ([]string, error) {
	physical := false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		option := args[0]
		if args = args[1:]; option == "--" {
			break
		}
		if strings.Trim(option[1:], "LP") != "" {
			fmt.Fprintf(hc.Stderr, "cd: %s: unknown option; usage: cd [-L|-P] [dir]\n", option)
			return []string{inner + "status", "2"}, nil
		}
		physical = strings.HasSuffix(option, "P")
	}
	if physical && len(args) == 1 && args[0] != "-" {
		to := args[0]
		if !filepath.IsAbs(to) {
			to = hc.Dir + "/" + to // what .. is behind a link is known when that is followed
		}
		if real, err := filepath.EvalSymlinks(to); err == nil { // cd says what is wrong with others
			args = []string{real}
		}
	}
	return append([]string{"cd"}, args...), nil
}

// mask shows or sets which rights new files do not have.
func (s *session) mask(hc interp.HandlerContext, args []string) []string {
	mask := uint32(currentMask())
	if len(args) == 1 {
		fmt.Fprintf(hc.Stdout, "%04o\n", mask)
		return []string{inner + "status", "0"}
	}
	if args[1] == "-S" && len(args) == 2 {
		rights := func(shift int) string {
			letters := ""
			for i, letter := range []string{"r", "w", "x"} {
				if mask>>shift&(4>>i) == 0 {
					letters += letter
				}
			}
			return letters
		}
		fmt.Fprintf(hc.Stdout, "u=%s,g=%s,o=%s\n", rights(6), rights(3), rights(0))
		return []string{inner + "status", "0"}
	}
	change, err := files.ParseMode(args[len(args)-1], 0)
	if err != nil {
		fmt.Fprintln(hc.Stderr, "umask:", err)
		return []string{inner + "status", "1"}
	}
	if strings.Trim(args[len(args)-1], "01234567") == "" {
		mask = change(0, false)
	} else { // what is written is the rights that files have
		mask = ^change(^mask&0o777, false)
	}
	was := unix.Umask(int(mask & 0o777))
	s.files.atEnd(hc, "umask", func() { unix.Umask(was) })
	return []string{inner + "status", "0"}
}

// currentMask is the process's. To ask for it by setting it would give others' files of that moment another one.
func currentMask() int {
	mask := 0
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "Umask:"); is {
			if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%o", &mask); err == nil {
				return mask
			}
		}
	}
	mask = unix.Umask(0)
	unix.Umask(mask)
	return mask
}

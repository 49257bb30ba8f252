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
)

// replaced tells whether a builtin of the interpreter is one of ours, which it is behind "command", too.
func replaced(name string) bool {
	return slices.Contains([]string{"cd", "help", "kill", "jobs", "fg", "bg", "wait", "disown", "history", "trap",
		"read", "eval", "exec", "source", ".", "exit", "return", "umask", "ulimit", "test", "["}, name)
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
	if len(args) == 1 {
		fmt.Fprintf(hc.Stdout, "%04o\n", currentMask())
		return []string{"true"}
	}
	mask := 0
	if _, err := fmt.Sscanf(args[1], "%o", &mask); err != nil || mask < 0 || mask > 0o777 {
		fmt.Fprintf(hc.Stderr, "umask: %s is not octal\n", args[1])
		return []string{"false"}
	}
	was := unix.Umask(mask)
	s.files.atEnd(hc, "umask", func() { unix.Umask(was) })
	return []string{"true"}
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

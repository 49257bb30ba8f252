// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"
)

// invocation is one run of a command: a line of a file in testdata/agree. Words are quoted as in the shell; "<FILE" at the end
// is its standard input, which is empty otherwise.
type invocation struct {
	line  string
	args  []string
	stdin string
}

// readInvocations reads all files of testdata/agree but the list of differences. Blank lines and those with # in front are comments.
func readInvocations(t *testing.T) (all []invocation) {
	t.Helper()
	files, err := filepath.Glob("testdata/agree/*.cases")
	if err != nil || len(files) == 0 {
		t.Fatal("no invocations in testdata/agree", err)
	}
	count := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range wholeLines(string(text)) {
			c, err := parseInvocation(line)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, line, err)
			}
			if !known(c.args[0]) {
				t.Fatalf("%s: the toolbox has no %s", file, c.args[0])
			}
			count[c.args[0]]++
			all = append(all, c)
		}
	}
	excused := readUncompared(t)
	for _, a := range applets() {
		switch n := count[a.Name]; {
		case n == 0 && !slices.Contains(excused, a.Name):
			t.Errorf("%s has no invocations: write %d, or why not in uncompared.txt", a.Name, leastInvocations)
		case n > 0 && slices.Contains(excused, a.Name):
			t.Errorf("%s has invocations: take it out of uncompared.txt", a.Name)
		case n > 0 && n < leastInvocations:
			t.Errorf("%s has %d invocations, want %d", a.Name, n, leastInvocations)
		}
	}
	return all
}

// readUncompared reads the names of the commands that cannot be compared, with the reason.
func readUncompared(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/agree/uncompared.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		commands, why, ok := strings.Cut(line, " | ")
		if !ok || why == "" {
			t.Fatalf("uncompared.txt: %q: a row is COMMANDS | WHY", line)
		}
		names = append(names, strings.Fields(commands)...)
	}
	return names
}

// wholeLines are the lines that are neither blank nor comments; one in which a quote is open goes on in the next.
func wholeLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		whole := ""
		for line := range strings.Lines(text) {
			if trimmed := strings.TrimSpace(line); whole == "" && (trimmed == "" || trimmed[0] == '#') {
				continue
			}
			whole += line
			if _, err := shell.Fields(whole, func(string) string { return "" }); err != nil && strings.Contains(err.Error(), "without closing quote") {
				continue
			}
			if !yield(strings.TrimSpace(whole)) {
				return
			}
			whole = ""
		}
		if whole != "" {
			yield(whole)
		}
	}
}

func parseInvocation(line string) (c invocation, err error) {
	c.line = line
	words := line
	if at := strings.LastIndex(line, " <"); at >= 0 && !strings.ContainsAny(line[at+2:], ` '"`) {
		words, c.stdin = line[:at], line[at+2:]
	}
	c.args, err = shell.Fields(words, func(string) string { return "" })
	if err == nil && len(c.args) == 0 {
		err = errors.New("there is no command")
	}
	return c, err
}

// difference is one that is known. In differences.txt it is a line:
//
//	sort | stdout code | -z.* | why
//
// that is: commands, what differs (stdout, stderr, code, files), a regular expression for all that follows the command's name,
// and the reason. Above the rows, # begins a comment.
type difference struct {
	names, what []string
	line        *regexp.Regexp
	why         string
}

func (d difference) String() string {
	return fmt.Sprintf("%s | %s | %s", strings.Join(d.names, " "), strings.Join(d.what, " "), d.line)
}

func (d difference) explains(f finding) bool {
	rest := strings.TrimSpace(strings.TrimPrefix(f.line, f.name))
	return slices.Contains(d.names, f.name) && slices.Contains(d.what, f.what) && d.line.MatchString(rest)
}

func readDifferences(t *testing.T) (all []difference) {
	t.Helper()
	text, err := os.ReadFile("testdata/agree/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 4 || parts[3] == "" {
			t.Fatalf("differences.txt: %q: a row is COMMANDS | WHAT | ARGUMENTS | WHY", line)
		}
		expression, err := regexp.Compile("^(?:" + parts[2] + ")$")
		if err != nil {
			t.Fatalf("differences.txt: %q: %v", line, err)
		}
		all = append(all, difference{strings.Fields(parts[0]), strings.Fields(parts[1]), expression, parts[3]})
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// columns is the terminal's width.
func (e *editor) columns() int {
	_, columns := terminal.Size(e.in)
	return columns
}

// width is the room of the prompt with a text.
func (e *editor) width(text string) int {
	return terminal.Cells(e.prompt) + terminal.Cells(strings.ReplaceAll(text, "\n", " "))
}

// draw shows prompt and line anew, over as many rows as they take.
func (e *editor) draw() {
	columns := e.columns()
	var b strings.Builder
	if e.row > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", e.row)
	}
	b.WriteString("\r\x1b[J" + e.prompt + strings.ReplaceAll(string(e.text), "\n", " "))
	total := e.width(string(e.text))
	if total > 0 && total%columns == 0 {
		b.WriteString("\n") // terminals wait at the edge
	}
	at := e.width(string(e.text[:e.at]))
	if up := total/columns - at/columns; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if right := at % columns; right > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", right)
	}
	e.row = at / columns
	fmt.Fprint(e.out, b.String())
}

// search is Ctrl-R: the newest line that has what is typed.
func (e *editor) search() (line string, done bool, err error) {
	prompt, old := e.prompt, e.text
	var typed []rune
	place := len(e.history)
	find := func(from int) {
		for i := from; i >= 0; i-- {
			if strings.Contains(e.history[i], string(typed)) {
				place, e.text = i, []rune(e.history[i])
				return
			}
		}
	}
	for {
		e.prompt = fmt.Sprintf("(search: %s) ", string(typed))
		e.at = len(e.text)
		e.draw()
		key, err := e.keys.Next()
		if err != nil {
			return "", false, err
		}
		switch {
		case key == terminal.Ctrl('r'):
			find(place - 1)
		case key == 0x7f || key == 8:
			typed = typed[:max(0, len(typed)-1)]
			find(len(e.history) - 1)
		case key >= ' ' && key <= unicode.MaxRune:
			typed = append(typed, key)
			find(min(place, len(e.history)-1))
		default:
			if e.prompt = prompt; key == terminal.Ctrl('g') || key == terminal.Ctrl('c') {
				e.text = old
				key = terminal.None
			}
			e.place = len(e.history)
			e.at = len(e.text)
			e.draw()
			return e.handle(key)
		}
	}
}

// tab completes the word before the cursor.
func (e *editor) tab() {
	before := string(e.text[:e.at])
	start, choices := e.complete(before)
	if len(choices) == 0 {
		fmt.Fprint(e.out, "\a")
		return
	}
	common := choices[0]
	for _, c := range choices[1:] {
		for !strings.HasPrefix(c, common) {
			_, size := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-size]
		}
	}
	word := before[start:]
	if len(choices) == 1 && !strings.HasSuffix(common, "/") {
		common += " "
	}
	if common != word {
		from := utf8.RuneCountInString(before[:start])
		e.text = slices.Concat(e.text[:from], []rune(common), e.text[e.at:])
		e.at = from + utf8.RuneCountInString(common)
		e.draw()
		return
	}
	if e.tabbed {
		at := e.at
		e.move(len(e.text))
		fmt.Fprint(e.out, "\n")
		for _, c := range choices[:min(len(choices), 100)] {
			fmt.Fprintf(e.out, "%s  ", filepath.Base(c)+map[bool]string{true: "/"}[strings.HasSuffix(c, "/")])
		}
		fmt.Fprint(e.out, "\n")
		e.at, e.row = at, 0
		e.draw()
		return
	}
	fmt.Fprint(e.out, "\a")
}

// complete finds how the last word of a line may go on: a command in the first place, otherwise a file.
func (s *session) complete(line string) (start int, choices []string) {
	start = strings.LastIndexAny(line, " \t;|&<>()=`\"'") + 1
	word := line[start:]
	ahead := strings.TrimRight(line[:start], " \t")
	first := ahead == "" || strings.ContainsAny(ahead[len(ahead)-1:], ";|&(`")
	if first && !strings.Contains(word, "/") {
		return start, s.commands(word)
	}
	dir, base := filepath.Split(word)
	look := dir
	if home := os.Getenv("HOME"); strings.HasPrefix(look, "~/") {
		look = home + look[1:]
	}
	if !filepath.IsAbs(look) {
		look = filepath.Join(s.runner.Dir, look)
	}
	list, err := os.ReadDir(look)
	if err != nil {
		return start, nil
	}
	for _, f := range list {
		name := f.Name()
		if !strings.HasPrefix(name, base) || base == "" && strings.HasPrefix(name, ".") {
			continue
		}
		full := dir + name
		if info, err := os.Stat(filepath.Join(look, name)); err == nil && info.IsDir() {
			full += "/"
		}
		choices = append(choices, full)
	}
	return start, choices
}

func (s *session) commands(word string) (choices []string) {
	path := os.Getenv("PATH")
	if v, ok := s.runner.Vars["PATH"]; ok {
		path = v.String()
	}
	names := []string{"cd", "export", "exit", "history", "read", "set", "unset", "source", "type", "wait"}
	for _, dir := range filepath.SplitList(path) {
		list, _ := os.ReadDir(dir)
		for _, f := range list {
			names = append(names, f.Name())
		}
	}
	for name := range s.runner.Funcs {
		names = append(names, name)
	}
	for _, n := range names {
		if strings.HasPrefix(n, word) {
			choices = append(choices, n)
		}
	}
	slices.Sort(choices)
	return slices.Compact(choices)
}

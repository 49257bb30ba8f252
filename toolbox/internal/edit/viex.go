// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// command runs a line that was typed behind a colon.
func (v *vim) command(text string) {
	from, to, given, rest, err := v.lineRange(strings.TrimSpace(text))
	if err != nil {
		v.message = err.Error()
		return
	}
	word := rest
	if at := strings.IndexFunc(rest,
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }); at >= 0 {
		word = rest[:at]
	}
	arg := rest[len(word):]
	force := strings.HasPrefix(arg, "!")
	name := strings.TrimSpace(strings.TrimPrefix(arg, "!"))
	switch word {
	case "":
		if given {
			v.at = place{to, 0}
		}
	case "w", "write", "wq", "x", "xit":
		v.write(word, name, from, to, given)
	case "q", "quit":
		v.leave(force)
	case "qa", "qall":
		v.files = nil
		v.leave(force)
	case "e", "edit":
		v.edit(name, force)
	case "n", "next":
		v.nextFile(force)
	case "r", "read":
		v.readIn(name)
	case "s":
		v.substitute(arg, from, to)
	case "d", "delete":
		v.remember()
		v.cut(place{from, 0}, place{to, 0}, true)
	case "y":
		v.copy(place{from, 0}, place{to, 0}, true)
	case "set":
		switch name {
		case "nu", "number":
			v.number = true
		case "nonu", "nonumber":
			v.number = false
		default:
			v.message = "only nu and nonu can be set"
		}
	case "noh", "nohlsearch":
	case "h", "help":
		v.message = strings.TrimSuffix(viHelp, "\n")
	default:
		v.message = fmt.Sprintf("there is no command %q (:help)", word)
	}
}

// edit is :e, of the file itself without a name.
func (v *vim) edit(name string, force bool) {
	if v.dirty && !force {
		v.message = "there are changes that are not written (:e! drops them)"
		return
	}
	if name == "" {
		name = v.name
	}
	if err := v.load(name); err != nil {
		v.message = err.Error()
		return
	}
	v.name = name
}

// nextFile is :n, the next of the files that vi was called with.
func (v *vim) nextFile(force bool) {
	if len(v.files) == 0 || v.dirty && !force {
		v.message = "there is no other file, or changes are not written"
		return
	}
	v.name, v.files = v.files[0], v.files[1:]
	if err := v.load(v.name); err != nil {
		v.message = err.Error()
	}
}

// readIn is :r, a file's lines below this one.
func (v *vim) readIn(name string) {
	data, err := v.read(name)
	if err != nil {
		v.message = err.Error()
		return
	}
	v.remember()
	v.lines = slices.Insert(slices.Clone(v.lines), v.at.row+1, split(string(data))...)
	v.at = place{v.at.row + 1, 0}
}

func (v *vim) write(word, name string, from, to int, given bool) {
	target := name
	if target == "" {
		target = v.name
	}
	if target == "" {
		v.message = "name a file: :w FILE"
		return
	}
	lines := v.lines
	if given {
		lines = v.lines[from : to+1]
	}
	if strings.HasPrefix(word, "x") && !v.dirty {
		v.quit = true
		return
	}
	if err := v.save(target, lines); err != nil {
		v.message = err.Error()
		return
	}
	if v.name == "" {
		v.name = target
	}
	if target == v.name && !given {
		v.dirty = false
	}
	if word == "wq" || word[0] == 'x' {
		v.leave(false)
	}
}

func (v *vim) leave(force bool) {
	switch {
	case v.dirty && !force:
		v.message = "there are changes that are not written (:q! drops them, :wq writes them)"
	case len(v.files) > 0 && !force:
		v.message = "there are more files (:n goes to the next, :q! leaves)"
	default:
		v.quit = true
	}
}

// lineRange reads what stands before a command: %, N, N,M with ., $ and +N.
func (v *vim) lineRange(text string) (from, to int, given bool, rest string, err error) {
	to = v.at.row
	if after, ok := strings.CutPrefix(text, "%"); ok {
		return 0, len(v.lines) - 1, true, strings.TrimSpace(after), nil
	}
	read := func() (int, bool) {
		n, ok := v.at.row, false
		switch {
		case strings.HasPrefix(text, "."):
			text, ok = text[1:], true
		case strings.HasPrefix(text, "$"):
			n, text, ok = len(v.lines)-1, text[1:], true
		default:
			digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
			if k, e := strconv.Atoi(text[:digits]); e == nil {
				n, text, ok = k-1, text[digits:], true
			}
		}
		if len(text) > 1 && (text[0] == '+' || text[0] == '-') {
			digits := 1 + len(text[1:]) - len(strings.TrimLeft(text[1:], "0123456789"))
			if k, e := strconv.Atoi(text[:digits]); e == nil {
				n, text, ok = n+k, text[digits:], true
			}
		}
		return n, ok
	}
	if from, given = read(); given {
		to = from
	}
	if strings.HasPrefix(text, ",") {
		text = text[1:]
		to, _ = read()
		given = true
	}
	to = min(to, len(v.lines)-1)
	if given && (from < 0 || from > to) && !(from == -1 && from == to) && strings.TrimSpace(text) != "" {
		return 0, 0, false, "", fmt.Errorf("lines %d to %d are not there", from+1, to+1)
	}
	return max(from, 0), max(to, 0), given, strings.TrimSpace(text), nil
}

// substitute is :s/RE/TEXT/flags; the expression is Go's, in TEXT & and \1 stand for what matched.
func (v *vim) substitute(arg string, from, to int) {
	if arg == "" {
		v.message = ":s/RE/TEXT/"
		return
	}
	s, err := parseSubstitution(arg)
	if err != nil {
		v.message = err.Error()
		return
	}
	v.search = s.match
	v.remember()
	v.lines = slices.Clone(v.lines)
	replaced := 0
	for r := from; r <= to && r < len(v.lines); r++ {
		if text, n := s.line(unraw(v.lines[r])); n > 0 {
			replaced += n
			v.set(r, raw(text))
			v.at = place{r, 0}
		}
	}
	v.message = fmt.Sprintf("%d replaced", replaced)
}

// substitution is what stands behind :s.
type substitution struct {
	match    *regexp.Regexp
	template string // of regexp.Expand
	most     int    // in a line; -1 is all
}

// parseSubstitution reads /RE/TEXT/flags, with any character in the place of the slash.
func parseSubstitution(arg string) (substitution, error) {
	parts := append(splitDelimited(arg[1:], arg[:1]), "", "")
	pattern, with, flags := parts[0], parts[1], parts[2]
	if strings.Contains(flags, "i") {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return substitution{}, err
	}
	s := substitution{match: re, template: expandTemplate(with), most: 1}
	if strings.Contains(flags, "g") {
		s.most = -1
	}
	return s, nil
}

// splitDelimited divides a text at a delimiter that has no backslash before it.
func splitDelimited(text, delim string) (parts []string) {
	part := ""
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1:i+2] == delim:
			i++
			part += delim
		case text[i] == '\\' && i+1 < len(text):
			part += text[i : i+2]
			i++
		case text[i:i+1] == delim:
			parts, part = append(parts, part), ""
		default:
			part += text[i : i+1]
		}
	}
	return append(parts, part)
}

// expandTemplate writes vi's & and \1 as regexp.Expand has them.
func expandTemplate(text string) string {
	return regexp.MustCompile(`\\([0-9&\\])|&|\$`).ReplaceAllStringFunc(text, func(m string) string {
		switch {
		case m == "&":
			return "${0}"
		case m == "$":
			return "$$"
		case m == `\&`, m == `\\`:
			return m[1:]
		}
		return "${" + m[1:] + "}"
	})
}

// line replaces in a line, and says how often.
func (s substitution) line(text string) (string, int) {
	found := s.match.FindAllStringSubmatchIndex(text, s.most)
	out, at := []byte{}, 0
	for _, m := range found {
		out = append(out, text[at:m[0]]...)
		out = s.match.ExpandString(out, s.template, text, m)
		at = m[1]
	}
	return string(out) + text[at:], len(found)
}

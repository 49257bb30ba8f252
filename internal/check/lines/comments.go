// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"regexp"
	"strings"
)

// prose is a line of a comment that is part of a paragraph: no list, no code, no table, no directive.
var prose = regexp.MustCompile(`^(\t*)// ([^\s|+*#-].*)$`)

// filled is a file in which every paragraph of a comment that has a long line is filled anew.
func filled(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	var out [][]byte
	for i := 0; i < len(lines); {
		m := prose.FindSubmatch(lines[i])
		if m == nil {
			out = append(out, lines[i])
			i++
			continue
		}
		indent, words, long, from := m[1], []string{}, false, i
		for ; i < len(lines); i++ {
			n := prose.FindSubmatch(lines[i])
			if n == nil || !bytes.Equal(n[1], indent) {
				break
			}
			long = long || width(lines[i]) > most
			words = append(words, strings.Fields(string(n[2]))...)
		}
		if !long {
			out = append(out, lines[from:i]...)
			continue
		}
		out = append(out, fill(indent, words)...)
	}
	return bytes.Join(out, []byte("\n"))
}

// fill puts words into lines of a comment. No line begins with what would make it something else than prose.
func fill(indent []byte, words []string) (lines [][]byte) {
	begin := string(indent) + "//"
	line := begin
	for _, w := range words {
		if line != begin && width([]byte(line+" "+w)) > most && prose.MatchString("// "+w) {
			lines = append(lines, []byte(line))
			line = begin
		}
		line += " " + w
	}
	return append(lines, []byte(line))
}

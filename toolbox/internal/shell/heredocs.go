// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// document makes of a here-document with <<- one whose lines have no tabs in front, and of that of a descriptor from 3
// on a word: the interpreter knows standard input's only.
func document(r *syntax.Redirect) {
	if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc {
		return
	}
	if r.Hdoc != nil && !isQuoted(r.Word) {
		asQuoted(r.Hdoc.Parts)
	}
	if r.Op == syntax.DashHdoc && r.Hdoc != nil {
		untab(r.Hdoc)
	}
	if r.Op = syntax.Hdoc; !isHigh(r) {
		return
	}
	switch {
	case r.Hdoc == nil:
		r.Word = quoted("")
	case isQuoted(r.Word):
		r.Word = quoted(r.Hdoc.Lit())
	default:
		text := &syntax.DblQuoted{}
		for _, part := range r.Hdoc.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				part = &syntax.Lit{Value: inQuotes(lit.Value)}
			}
			text.Parts = append(text.Parts, part)
		}
		r.Word = &syntax.Word{Parts: []syntax.WordPart{text}}
	}
	r.Hdoc = nil
}

// untab takes the tabs away at the beginning of lines, and nowhere else.
func untab(body *syntax.Word) {
	begin := true // of a line
	for _, part := range body.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			begin = false
			continue
		}
		lines := strings.SplitAfter(lit.Value, "\n")
		for i := range lines {
			if begin || i > 0 {
				lines[i] = strings.TrimLeft(lines[i], "\t")
			}
		}
		lit.Value = strings.Join(lines, "")
		begin = strings.HasSuffix(lit.Value, "\n")
	}
}

// isQuoted tells whether a here-document's end is quoted: then nothing in it is expanded.
func isQuoted(end *syntax.Word) bool {
	for _, part := range end.Parts {
		if lit, ok := part.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// inQuotes is a here-document's text as it is within double quotes, which mean something there.
func inQuotes(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			b.WriteString(`\"`)
			continue
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '"':
			b.WriteString(`\\`)
			continue
		case text[i] == '\\' && i+1 < len(text):
			b.WriteByte(text[i])
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

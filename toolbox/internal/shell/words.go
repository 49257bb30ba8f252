// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// positional makes of ${10}, which the interpreter does not know, a part of all parameters.
func positional(n *syntax.ParamExp) {
	if n.Param == nil || n.Excl || n.Length || n.Index != nil || n.Slice != nil || n.Repl != nil || n.Exp != nil {
		return
	}
	number, err := strconv.Atoi(n.Param.Value)
	if err != nil || number < 10 {
		return
	}
	n.Slice = &syntax.Slice{Offset: literal(n.Param.Value), Length: literal("1")}
	n.Param, n.Short = &syntax.Lit{Value: "*"}, false
}

// allParameters makes of ${1+"$@"}, as old scripts have it, "$@": the interpreter would split it.
func allParameters(w *syntax.Word) {
	for i, part := range w.Parts {
		all, ok := part.(*syntax.ParamExp)
		if !ok || all.Param == nil || all.Exp == nil || all.Exp.Op != syntax.AlternateUnset || all.Exp.Word == nil ||
			all.Param.Value != "1" && all.Param.Value != "@" || len(all.Exp.Word.Parts) != 1 {
			continue
		}
		quotes, ok := all.Exp.Word.Parts[0].(*syntax.DblQuoted)
		if !ok || len(quotes.Parts) != 1 {
			continue
		}
		if of, ok := quotes.Parts[0].(*syntax.ParamExp); ok && of.Param != nil && of.Param.Value == "@" &&
			of.Exp == nil {
			w.Parts[i] = quotes
		}
	}
}

// homes has ~ stand for a folder also behind the colons of what is assigned, as in PATH=$PATH:~/bin.
func homes(value *syntax.Word) {
	if value == nil {
		return
	}
	var parts []syntax.WordPart
	for i, part := range value.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			parts = append(parts, part)
			continue
		}
		text, last := lit.Value, i+1 == len(value.Parts)
		for {
			before, after, ok := cutHome(text, i == 0 && text == lit.Value, last)
			if !ok {
				break
			}
			if before != "" {
				parts = append(parts, &syntax.Lit{Value: before})
			}
			parts = append(parts, home())
			text = after
		}
		if text != "" || i == 0 && lit.Value == "" {
			parts = append(parts, &syntax.Lit{Value: text})
		}
	}
	value.Parts = parts
}

// home is the folder, or ~ where there is none.
func home() *syntax.ParamExp {
	none := &syntax.Expansion{Op: syntax.DefaultUnset,
		Word: &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: "~"}}}}
	return &syntax.ParamExp{Param: &syntax.Lit{Value: "HOME"}, Exp: none}
}

// cutHome cuts at the first ~ that stands for the folder and that the interpreter does not see. first: text is the
// beginning of what is assigned; last: its end is that of what is assigned.
func cutHome(text string, first, last bool) (before, after string, ok bool) {
	for i := range len(text) {
		if text[i] != '~' || i == 0 && !first || i > 0 && text[i-1] != ':' {
			continue
		}
		rest := text[i+1:]
		if i == 0 && (rest == "" || rest[0] == '/') { // which it sees
			continue
		}
		if rest == "" && last || rest != "" && (rest[0] == '/' || rest[0] == ':') {
			return text[:i], rest, true
		}
	}
	return "", "", false
}

// escaped makes single quotes of backslashes, for the words that the interpreter takes these over with: those that are
// no arguments, as what is assigned.
func escaped(w *syntax.Word) {
	if w == nil {
		return
	}
	var parts []syntax.WordPart
	for _, part := range joined(w.Parts) {
		lit, ok := part.(*syntax.Lit)
		if !ok || !strings.Contains(lit.Value, `\`) {
			parts = append(parts, part)
			continue
		}
		for text := lit.Value; text != ""; {
			before, after, found := strings.Cut(text, `\`)
			if found && after == "" { // nothing that it is before
				before = text
			}
			_, size := utf8.DecodeRuneInString(after)
			char := after[:size]
			if rest, is := strings.CutSuffix(before, "$"); is && size > 0 { // quotes behind it are others
				before, char = rest, "$"+char
			}
			if before != "" {
				parts = append(parts, &syntax.Lit{Value: before})
			}
			if size > 0 {
				parts = append(parts, quoted(char).Parts...)
			}
			text = after[size:]
		}
	}
	w.Parts = parts
}

func escapedTest(x syntax.TestExpr) {
	if w, ok := x.(*syntax.Word); ok {
		escaped(w)
	}
}

// joined makes one of literals that stand side by side, as a $ does that stands for itself.
func joined(parts []syntax.WordPart) (out []syntax.WordPart) {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if n := len(out); ok && n > 0 {
			if before, ok := out[n-1].(*syntax.Lit); ok {
				out[n-1] = &syntax.Lit{Value: before.Value + lit.Value}
				continue
			}
		}
		out = append(out, part)
	}
	return out
}

// instead tells whether a parameter's expansion has a word that may stand in its place.
func instead(n *syntax.ParamExp) bool {
	if n.Exp == nil || n.Exp.Word == nil {
		return false
	}
	op := n.Exp.Op.String()
	return strings.Contains("-+=?", op[len(op)-1:])
}

// asQuoted makes of the word in "${x:-'a'}" what it is within double quotes, where single quotes, most backslashes and
// ~ stand for themselves.
func asQuoted(parts []syntax.WordPart) {
	for _, part := range parts {
		n, ok := part.(*syntax.ParamExp)
		if !ok || !instead(n) {
			continue
		}
		for i, part := range n.Exp.Word.Parts {
			switch part := part.(type) {
			case *syntax.Lit:
				if strings.HasPrefix(part.Value, "~") || strings.Contains(part.Value, `\`) {
					text := &syntax.Lit{Value: strings.ReplaceAll(part.Value, `\}`, "}")}
					n.Exp.Word.Parts[i] = &syntax.DblQuoted{Parts: []syntax.WordPart{text}}
				}
			case *syntax.SglQuoted:
				if !part.Dollar {
					n.Exp.Word.Parts[i] = withQuotes(part)
				}
			}
		}
	}
}

// withQuotes is what is within single quotes, with them, as double quotes take it.
func withQuotes(single *syntax.SglQuoted) syntax.WordPart {
	for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(`"'` + single.Value + `'"`)) {
		if err != nil || len(word.Parts) != 1 {
			break
		}
		return word.Parts[0]
	}
	return single
}

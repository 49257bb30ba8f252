// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	most  = 120 // columns of a line
	tab   = 4   // columns of a tab
	least = 60  // columns before the first break that looks well
)

func width(line []byte) int {
	return utf8.RuneCount(line) + (tab-1)*bytes.Count(line, []byte("\t"))
}

// piece is a token on a line.
type piece struct {
	tok      token.Token
	lit      string
	from, to int // bytes from the line's beginning
}

// scan finds the tokens of each line, counted from 1. One that goes over several lines, a text in backquotes, bars its
// lines: they have none.
func scan(text []byte) (map[int][]piece, error) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	var fault error
	s.Init(file, text, func(at token.Position, msg string) { fault = fmt.Errorf("line %d: %s", at.Line, msg) },
		scanner.ScanComments)
	out, barred := map[int][]piece{}, map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		word := lit
		if word == "" || !tok.IsLiteral() && tok != token.COMMENT && !tok.IsKeyword() {
			word = tok.String()
		}
		at := file.Position(pos)
		if n := strings.Count(word, "\n"); n > 0 {
			for i := range n + 1 {
				barred[at.Line+i] = true
			}
			continue
		}
		out[at.Line] = append(out[at.Line], piece{tok, lit, at.Column - 1, at.Column - 1 + len(word)})
	}
	for line := range barred {
		delete(out, line)
	}
	return out, fault
}

// breakLine breaks a line in two, or in three around the body of a function; a comment at its end goes before it. The
// rest is nil where it is not broken. It flows if the next line may go on in it: when it is in a list that does.
func breakLine(line []byte, pieces []piece) (first, rest []byte, flows bool) {
	if last := pieces[len(pieces)-1]; last.tok == token.COMMENT {
		if len(pieces) == 1 || !strings.HasPrefix(last.lit, "// ") || pieces[0].tok == token.RBRACE {
			return line, nil, false
		}
		indent := line[:pieces[0].from]
		return slices.Concat(indent, line[last.from:]), bytes.TrimRight(line[:last.from], " \t"), false
	}
	if best := bestBreak(line, pieces); best.at > 0 {
		first, rest = bytes.TrimRight(line[:best.at], " "), bytes.TrimLeft(line[best.at:], " ")
		return first, rest, best.depth == depthOf(pieces) && pieces[len(pieces)-1].tok == token.COMMA
	}
	if from, to, ok := body(pieces); ok {
		return line[:from], slices.Concat(line[from:to], []byte("\n"), line[to:]), false
	}
	return line, nil, false
}

// follows reports whether the line after a broken one goes on with the same list, without a shape of its own: one
// element a line.
func follows(line, next []byte, pieces, after []piece) bool {
	indent := func(l []byte) int { return len(l) - len(bytes.TrimLeft(l, "\t")) }
	want := indent(line) + min(depthOf(pieces), 1)
	if indent(next) != want || after[0].tok == token.COMMENT || after[len(after)-1].tok == token.COMMENT {
		return false
	}
	switch after[0].tok {
	case token.RBRACE, token.RPAREN, token.RBRACK, token.LBRACE, token.FUNC:
		return false
	}
	return depthOf(pieces) >= 0
}

// depthOf is how many more brackets a line opens than it closes.
func depthOf(pieces []piece) (depth int) {
	for _, p := range pieces {
		switch p.tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		}
	}
	return depth
}

// choice is a place where a line may be broken: after the byte at, within so many brackets, at a token that binds so
// tightly.
type choice struct{ at, depth, tight int }

// beats reports whether a place is better than another one that is further to the right.
func (c choice) beats(other choice) bool {
	return c.at > 0 && (other.depth > c.depth || other.depth == c.depth && other.tight > c.tight)
}

// tightness is how tightly a token binds.
func tightness(t token.Token) int {
	return slices.Index([]token.Token{token.COMMA, token.LOR, token.LAND, token.ADD}, t)
}

// bestBreak is where a line is best broken: after a comma or an operator between two operands, as far out of brackets
// as there is one in the right half, and as far to the right; at 0 if there is none.
func bestBreak(line []byte, pieces []piece) choice {
	var late, early []choice
	depth, ugly := 0, []bool{}
	for i, p := range pieces {
		switch p.tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
			results := p.tok == token.LPAREN && i > 0 && pieces[i-1].tok == token.RPAREN
			ugly = append(ugly, results || p.tok == token.LBRACE && isBody(pieces, i))
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
			ugly = ugly[:max(len(ugly)-1, 0)]
		}
		if i == len(pieces)-1 || !breakable(pieces, i) || slices.Contains(ugly, true) {
			continue
		}
		switch w := width(line[:p.to]); {
		case w > most:
		case w >= least:
			late = append(late, choice{p.to, depth, tightness(p.tok)})
		case i > 0:
			early = append(early, choice{p.to, depth, tightness(p.tok)})
		}
	}
	for _, list := range [][]choice{late, early} {
		best := choice{}
		for _, c := range list {
			if !best.beats(c) {
				best = c
			}
		}
		if best.at > 0 {
			return best
		}
	}
	return choice{}
}

// breakable reports whether a line may end after a token: no semicolon is put there, and it does not look odd.
func breakable(pieces []piece, i int) bool {
	switch pieces[i].tok {
	case token.COMMA, token.LAND, token.LOR:
		return true
	case token.ADD:
		before := token.ILLEGAL
		if i > 0 {
			before = pieces[i-1].tok
		}
		return before.IsLiteral() || before == token.RPAREN || before == token.RBRACK
	}
	return false
}

// isBody reports whether a brace opens a function's body, or another block: statements, which are broken at its braces.
func isBody(pieces []piece, i int) bool {
	depth := 0
	for j := i - 1; j >= 0; j-- {
		switch pieces[j].tok {
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth++
		case token.LPAREN, token.LBRACK, token.LBRACE:
			if depth--; depth < 0 {
				return false
			}
		case token.FUNC:
			if depth == 0 {
				return true
			}
		case token.COMMA, token.ASSIGN, token.DEFINE, token.COLON, token.RETURN:
			if depth == 0 {
				return false
			}
		}
	}
	return false
}

// body is the inside of the first function body that begins and ends on a line.
func body(pieces []piece) (from, to int, ok bool) {
	for i, p := range pieces {
		if p.tok != token.LBRACE || !isBody(pieces, i) {
			continue
		}
		depth := 0
		for j := i; j < len(pieces); j++ {
			switch pieces[j].tok {
			case token.LBRACE:
				depth++
			case token.RBRACE:
				if depth--; depth == 0 && j > i+1 {
					return p.to, pieces[j].from, true
				}
			}
		}
	}
	return 0, 0, false
}

// same refuses a change of the program: other tokens, but for a semicolon before a closing brace, or other words in
// comments.
func same(old, text []byte) error {
	was, wasWords, err := essence(old)
	if err != nil {
		return err
	}
	is, isWords, err := essence(text)
	if err != nil {
		return err
	}
	if !slices.Equal(was, is) {
		return errors.New("breaking its lines would change it")
	}
	if !slices.Equal(wasWords, isWords) {
		return errors.New("breaking its lines would change its comments")
	}
	return nil
}

// essence is what of a file must stay: the tokens in their order, and the words of comments, which may move.
func essence(text []byte) (tokens, words []string, err error) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(at token.Position, msg string) { err = fmt.Errorf("line %d: %s", at.Line, msg) },
		scanner.ScanComments)
	for {
		_, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			slices.Sort(words)
			return tokens, words, err
		case tok == token.COMMENT:
			words = append(words, strings.Fields(strings.TrimPrefix(lit, "//"))...)
			continue
		case tok == token.SEMICOLON:
			lit = ";"
		}
		if n := len(tokens); (tok == token.RBRACE || tok == token.RPAREN) && n > 0 && tokens[n-1] == ";;" {
			tokens = tokens[:n-1]
		}
		tokens = append(tokens, tok.String()+lit)
	}
}

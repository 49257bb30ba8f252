// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// compile makes a POSIX regular expression, basic or extended, one of Go's with POSIX' leftmost-longest matches.
func compile(pattern string, extended, fold bool) (*regexp.Regexp, error) {
	text, err := translate(pattern, extended)
	if err != nil {
		return nil, err
	}
	if fold {
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	re.Longest()
	return re, nil
}

// translate rewrites what POSIX and Go write in different ways.
func translate(pattern string, extended bool) (string, error) {
	var b strings.Builder
	start := true // of an expression: there a * is itself
	for i := 0; i < len(pattern); i++ {
		ch := pattern[i]
		was := start
		start = false
		switch {
		case ch == '[':
			class, n := bracket(pattern[i:])
			if n == 0 {
				return "", fmt.Errorf("pattern %q: a ] is missing", pattern)
			}
			b.WriteString(class)
			i += n - 1
		case ch == '\\' && i+1 == len(pattern):
			return "", fmt.Errorf("pattern %q ends in a backslash", pattern)
		case ch == '\\':
			i++
			next := pattern[i]
			switch {
			case next >= '1' && next <= '9':
				return "", fmt.Errorf("pattern %q: back-references (\\%c) are not known here", pattern, next)
			case !extended && strings.IndexByte("(){}|+?", next) >= 0:
				b.WriteByte(next)
				start = next == '(' || next == '|'
			case next == '<' || next == '>':
				b.WriteString(`\b`)
			case strings.IndexByte("wWsSbBnt", next) >= 0:
				b.WriteByte('\\')
				b.WriteByte(next)
			default:
				_, size := utf8.DecodeRuneInString(pattern[i:])
				b.WriteString(regexp.QuoteMeta(pattern[i : i+size]))
				i += size - 1
			}
		case ch == '*' && was && !extended:
			b.WriteString(`\*`)
		// nothing more than there is
		case ch == '*' && was, ch == '*' && i > 0 && pattern[i-1] == '*' && repeats(b.String()):
			start = was
		case ch == '^' && !extended && !was, ch == '$' && !extended && i+1 < len(pattern) &&
			!strings.HasPrefix(pattern[i+1:], `\)`) && !strings.HasPrefix(pattern[i+1:], `\|`):
			b.WriteByte('\\')
			b.WriteByte(ch)
		case !extended && strings.IndexByte("(){}|+?", ch) >= 0:
			b.WriteByte('\\')
			b.WriteByte(ch)
		case ch == '{' && (i+1 == len(pattern) || pattern[i+1] < '0' || pattern[i+1] > '9') &&
			!strings.HasPrefix(pattern[i+1:], ","):
			b.WriteString(`\{`)
		default:
			b.WriteByte(ch)
			start = ch == '^' && was || ch == '(' || ch == '|'
		}
	}
	return b.String(), nil
}

// repeats tells whether an expression ends in a * that repeats, and not in one that is a character.
func repeats(text string) bool {
	return strings.HasSuffix(text, "*") && !strings.HasSuffix(text, `\*`)
}

// bracket reads [...] as POSIX has it: a backslash is itself, a ] in the first place too.
func bracket(text string) (class string, n int) {
	i := 1
	var b strings.Builder
	b.WriteByte('[')
	if i < len(text) && text[i] == '^' {
		b.WriteByte('^')
		i++
	}
	for first := true; i < len(text); first = false {
		switch {
		case text[i] == ']' && !first:
			b.WriteByte(']')
			return b.String(), i + 1
		case strings.HasPrefix(text[i:], "[:"):
			end := strings.Index(text[i:], ":]")
			if end < 0 {
				return "", 0
			}
			b.WriteString(text[i : i+end+2])
			i += end + 2
			continue
		case text[i] == ']' || text[i] == '[':
			b.WriteByte('\\')
		case text[i] == '\\':
			if i+1 < len(text) && strings.IndexByte("nt", text[i+1]) >= 0 { // as GNU has it
				b.WriteString(text[i : i+2])
				i += 2
				continue
			}
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
		i++
	}
	return "", 0
}

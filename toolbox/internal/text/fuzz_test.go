// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
	"unicode/utf8"
)

// FuzzPattern makes a Go expression of a POSIX one: what the translation takes, Go reads, or says why not.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"a*", "\\(a\\|b\\)\\{2\\}", "[]a]", "[^]-]", "[[:alpha:]\\]", "*a", "^*", "a{,2}", "\\<a\\>", "é\\é", "[", "\\", "a|*", "(*)"} {
		f.Add(s, "abab")
	}
	f.Fuzz(func(t *testing.T, pattern, line string) {
		for _, extended := range []bool{false, true} {
			text, err := translate(pattern, extended)
			if err != nil {
				continue
			}
			if utf8.ValidString(pattern) && !utf8.ValidString(text) {
				t.Errorf("%q becomes %q", pattern, text)
			}
			if re, err := compile(pattern, extended, true); err == nil {
				re.FindStringIndex(line)
			}
		}
	})
}

// FuzzSed reads scripts. Those that name files are left out.
func FuzzSed(f *testing.F) {
	for _, s := range []string{"s/a/b/g", "1,$ {p;d}", "/x/I,+3!y/abc/xyz/", ":a;N;$!ba;s/\\n/,/", "0~3d", "a\\\ntext", "s,\\(a\\),[\\1&],2p", "s/a", "}", "#n\np", "b x"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, script string, extended bool) {
		if strings.ContainsAny(script, "wW") {
			return
		}
		p := &sedParser{text: script, extended: extended}
		program, err := p.parse()
		for _, c := range program {
			if err == nil && (c.jump < 0 || c.jump > len(program)) {
				t.Errorf("%q: a jump to %d of %d", script, c.jump, len(program))
			}
		}
	})
}

// FuzzLists reads what says which fields, keys and how many lines are wanted.
func FuzzLists(f *testing.F) {
	for _, s := range []string{"1,3-5,7-", "-2", "2.3,2.5nr", "1.-1", "99999999999999999999", "k", "10K", "0"} {
		f.Add(s, "a b c")
	}
	f.Fuzz(func(t *testing.T, text, line string) {
		if list, err := parseSpans(text); err == nil {
			for _, s := range list {
				if s.from < 1 || s.to != 0 && s.to < s.from {
					t.Errorf("%q: %+v", text, list)
				}
			}
		}
		if k, err := parseKey(text); err == nil {
			for _, sep := range []string{"", " "} {
				_ = k.compare(k.part(line, sep), k.part(text, sep))
			}
		}
		if n, err := applet.ParseAmount(text); err == nil && n < 0 && text[0] != '-' {
			t.Errorf("%q is the count %d", text, n)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzPlain shows names that others chose: nothing of them controls a terminal (RS-13).
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"plain", "\x1b]0;x\a", "\x9b2J", "\u009b", "\u202e", "a\tb\nc", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := Plain(text)
		if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }) {
			t.Errorf("%q becomes %q", text, out)
		}
		if again := Plain(out); again != out {
			t.Errorf("%q becomes %q, and then %q", text, out, again)
		}
	})
}

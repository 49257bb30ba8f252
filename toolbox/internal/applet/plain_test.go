// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"strings"
	"testing"
)

// RS-13: names do not act on a terminal, also when a write cuts a character in two.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":        "plain\ttext\n",
		"gr\u00fc\u00dfe":      "gr\u00fc\u00dfe",
		"\x1b]0;PWNED\a":       "?]0;PWNED?",
		"\u009b2J\r":           "?2J?",
		"\x9b2J\xe2\x82 end":   "?2J?? end",
		"gpj.\u202etxe\u2066":  "gpj.?txe?",
		"a\x00b\x7f\U0001f642": "a?b?\U0001f642",
	} {
		if got := Plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		var b strings.Builder
		w := &plainWriter{to: &b}
		for i := range len(in) {
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("%q byte by byte: got %q, want %q", in, b.String(), want)
		}
	}
}

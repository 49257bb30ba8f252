// SPDX-License-Identifier: Apache-2.0

package oneline

import "testing"

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""},
		{"plain words", 20, "plain words"},
		{"two\nlines,\ta tab", 20, "two lines, a tab"},
		{"\x1b[31mred\x1b[0m", 20, "[31mred [0m"}, // the terminal is not told
		{"bell\a, back\b, none\u200b", 30, "bell , back , none"},
		{"five5", 5, "five5"},
		{"six666", 5, "six66…"},
		{"äöüß€", 4, "äöüß…"},
		{"\xff\xfe", 4, "\ufffd\ufffd"}, // what is no text is shown as that
	} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

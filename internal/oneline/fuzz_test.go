// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzOf puts what others wrote on one line: nothing of it controls a terminal (RS-13).
func FuzzOf(f *testing.F) {
	f.Add("a\x1b[2Jb\r\n\u202e\xff c", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		line := Of(text)
		if strings.ContainsFunc(line, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) || Of(line) != line {
			t.Errorf("%q becomes %q", text, line)
		}
		if most >= 0 && len([]rune(Cut(text, most))) > most+1 {
			t.Errorf("Cut(%q, %d) is %q", text, most, Cut(text, most))
		}
	})
}

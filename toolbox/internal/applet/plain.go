// SPDX-License-Identifier: Apache-2.0

package applet

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Plain is a text in which what a terminal would obey is a question mark, as coreutils print names: controls but
// newline and tab, what is not UTF-8, and what changes the direction of text.
func Plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(plainRune(r))
	}
	return b.String()
}

func plainRune(r rune) rune {
	if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return '?'
	}
	return r
}

// plainWriter writes through Plain. A character that is cut off at the end of a write waits for the next one.
type plainWriter struct {
	to   io.Writer
	held []byte
}

// Write implements io.Writer.
func (w *plainWriter) Write(p []byte) (int, error) {
	text := append(w.held, p...)
	whole := len(text)
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if b := text[len(text)-cut]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-cut:]) {
				whole = len(text) - cut
			}
			break
		}
	}
	w.held = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.to, Plain(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Ctrl-P Ctrl-Q leaves; every other use of the two keys reaches the program, also when they come in reads of their own.
func TestDetacher(t *testing.T) {
	for in, want := range map[string]struct {
		out  string
		left bool
	}{
		"ls\r":                     {"ls\r", false},
		"ls\x10\x11never":          {"ls", true},
		"\x10\x11":                 {"", true},
		"a\x10b":                   {"a\x10b", false},
		"\x10\x10\x11":             {"\x10", true},
		"\x10\x10x":                {"\x10\x10x", false},
		"\x11\x10":                 {"\x11", false}, // the Ctrl-P waits for what comes next; then the input ended
		strings.Repeat("0123", 40): {strings.Repeat("0123", 40), false},
	} {
		for name, reader := range map[string]io.Reader{"at once": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
			left := 0
			d := &detacher{in: reader, leave: func() { left++ }}
			var out strings.Builder
			buf := make([]byte, 16)
			for {
				n, err := d.Read(buf)
				out.Write(buf[:n])
				if err != nil {
					break
				}
			}
			if out.String() != want.out || left > 1 || (left == 1) != want.left {
				t.Errorf("%q %s: handed on %q, left %d times", in, name, out.String(), left)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"
	"testing"
)

// TestViKeys types keys and looks at the text that comes of them. A count that nobody means takes neither all time nor all memory.
func TestViKeys(t *testing.T) {
	for name, c := range map[string]struct{ text, keys, want string }{
		"join keeps bytes that are no text":     {"a\n \x80b\n", "J", "a \x80b\n"},
		"a line end in the place of characters": {"abcd\n", "l2r\n", "a\nd\n"},
		"a key that is not a character":         {"ab\n", "r\x01", "ab\n"},
		"put three times":                       {"ab\ncd\n", "yy3pGdd", "ab\nab\nab\nab\n"},
		"put characters three times":            {"ab cd\n", "yw3P", "ab ab ab ab cd\n"},
		"put over a line's end three times":     {"ab\ncd\nef\n", "ly2/d\n3P", "ab\ncb\ncb\ncb\ncd\nef\n"},
		"a count beyond the text":               {"ab cd\nef\n", "99999999d99999999w", "\nef\n"},
		"a count beyond the paragraphs":         {"ab\n\ncd\n", "99999999d99999999}", "cd\n"},
		"a count beyond the line":               {"abc\n", "99999999fcx", "bc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &vim{name: "file", screen: typed(23, 79, keysOf(c.keys))}
			wrote := ""
			v.read = func(string) ([]byte, error) { return []byte(c.text), nil }
			v.store = func(_, text string) error { wrote = text; return nil }
			if err := v.load("file"); err != nil {
				t.Fatal(err)
			}
			for {
				k, err := v.key()
				if err != nil {
					break
				}
				v.normal(k)
			}
			if err := v.save("file", v.lines); err != nil || wrote != c.want {
				t.Errorf("%q, wanted %q (%v)", wrote, c.want, err)
			}
		})
	}
	v := &vim{yank: [][]rune{[]rune(strings.Repeat("a", 100))}, lines: [][]rune{{}}, whole: true}
	if v.put(false, mostTimes); len(v.lines) > mostPut/100+1 || v.message == "" {
		t.Errorf("%d lines, %q", len(v.lines), v.message)
	}
}

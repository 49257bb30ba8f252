// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/toolbox/internal/terminal"
)

// typed is a screen on which keys were typed, after which the terminal goes away.
func typed(rows, columns uint8, keys []rune) *screen {
	s := &screen{out: io.Discard, rows: 1 + int(rows), columns: 1 + int(columns), keys: make(chan key, len(keys)), resized: make(chan os.Signal)}
	for _, k := range keys {
		s.keys <- key{rune: k}
	}
	close(s.keys)
	return s
}

// keysOf makes keys of a text: a control character that no terminal sends stands for a key that is not a character.
func keysOf(text string) (keys []rune) {
	special := map[rune]rune{1: terminal.Up, 3: terminal.Down, 5: terminal.Left, 11: terminal.Right, 14: terminal.Home, 15: terminal.End, 19: terminal.PageUp,
		20: terminal.PageDown, 22: terminal.Delete, 24: terminal.None, 27: terminal.Escape}
	for _, r := range text {
		if k, ok := special[r]; ok {
			r = k
		}
		keys = append(keys, r)
	}
	return keys
}

// FuzzVi: whatever is typed, on a screen of whatever size, the cursor is on the text, each row is one line, what was undone is as it was,
// and what is written reads back as the same text. Nothing is written that nobody asked for.
func FuzzVi(f *testing.F) {
	for _, keys := range []string{
		"ddp", "3x\x1b.u\x12", "ihello\x1b", "cwword\x1b..", "d3wP2p", "/o\nnNd/x\n", ":%s/o/\\0\\0/g\n", ":1,2d\n:wq\n", ":set nu\nG$", "5>>3<<J", "ra~~r\x01r\nx",
		"99999999d99999999w", "9999999p", "yG9999999p", "fofTo;,t", "%d%", "}{d}", "yyP:r other\n", ":e! gone\n:x\n", "\x14\x13\x06\x02zZZ", "o\ta\n\x17\x15b\x1bO\x7f\x7f",
		":w new\n:q\n", "+-Gggk\x01\x03\x05\x0b", "S\x1bcc\x1bC\x1bs\x1bD", "?a\nN", "yyJ.:2,1d\n:$-1d\n:99\n:.,+1y\np",
	} {
		f.Add(uint8(23), uint8(79), "one two\n\tthree (four)\n\n\x80\xfffive\n", keys)
		f.Add(uint8(0), uint8(3), "", keys)
	}
	f.Fuzz(func(t *testing.T, rows, columns uint8, text, keys string) {
		if len(text) > 1<<10 || len(keys) > 100 {
			return
		}
		v := &vim{name: "file", screen: typed(rows, columns, keysOf(keys))}
		wrote := map[string]string{}
		v.read = func(name string) ([]byte, error) {
			if name == "gone" {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		}
		v.store = func(name, text string) error {
			if name == "" || name != "as it was" && !strings.ContainsAny(keys, "wxZ") {
				t.Errorf("%q was written, and nobody said so", name)
			}
			wrote[name] = text
			return nil
		}
		if err := v.load("file"); err != nil {
			t.Fatal(err)
		}
		if err := v.save("as it was", v.lines); err == nil && wrote["as it was"] != text {
			t.Fatalf("%q is written as %q", text, wrote["as it was"])
		}
		for !v.quit {
			v.frame()
			k, err := v.key()
			if err != nil {
				break
			}
			v.normal(k)
			if v.fix(); !whole(t, v) {
				return
			}
		}
		undone(t, v)
	})
}

// whole checks a buffer. It is false when there is too much of it to go on.
func whole(t *testing.T, v *vim) bool {
	if len(v.lines) == 0 || v.at.row < 0 || v.at.row >= len(v.lines) || v.at.col < 0 || v.at.col > len(v.line()) {
		t.Fatalf("the cursor is at %+v of %d lines", v.at, len(v.lines))
	}
	size := len(v.lines)
	for i, l := range v.lines {
		if size += len(l); slices.Contains(l, '\n') {
			t.Fatalf("line %d is two: %q", i, unraw(l))
		}
		if at := slices.IndexFunc(l, func(r rune) bool { return r >= terminal.Up && r < rawByte }); at >= 0 {
			t.Fatalf("line %d has a key that is not a character: %x", i, l[at])
		}
		if back := raw(unraw(l)); !slices.Equal(back, l) && !slices.ContainsFunc(l, func(r rune) bool { return r >= rawByte }) { // such bytes may become text together
			t.Fatalf("line %d, %q, reads back as %q", i, string(l), string(back))
		}
	}
	return size < 1<<18
}

// undone undoes everything and does it again.
func undone(t *testing.T, v *vim) {
	clone := func() [][]rune { return slices.Clone(v.lines) }
	last, steps := clone(), len(v.undo)
	for range steps {
		v.swap(&v.undo, &v.redo)
	}
	for range steps {
		v.swap(&v.redo, &v.undo)
	}
	if !slices.EqualFunc(last, v.lines, slices.Equal[[]rune]) {
		t.Fatalf("undone and done again it is %q, not %q", v.lines, last)
	}
}

// FuzzLess: whatever is in a file and typed, a page of it is shown.
func FuzzLess(f *testing.F) {
	for _, keys := range []string{" b du jk gG", "/e\nnNq", "?(\n?o\nnN", "h", "\x13\x14\x0e\x0f/\x7f"} {
		f.Add(uint8(23), uint8(79), true, "one\ntwo\x1b[31m\n\tthree\xff\n\u4e16\u754c", keys)
		f.Add(uint8(0), uint8(0), false, "\u4e16\u754c", keys)
	}
	f.Fuzz(func(t *testing.T, rows, columns uint8, number bool, text, keys string) {
		if len(text) > 1<<12 || len(keys) > 100 {
			return
		}
		var shown strings.Builder
		p := &pager{screen: typed(rows, columns, keysOf(keys)), lines: strings.Split(text, "\n"), number: number}
		p.out = &shown
		if err := p.run(false); err != nil {
			t.Error(err)
		}
		if p.top < 0 || p.top >= len(p.lines) {
			t.Errorf("line %d of %d is on top", p.top, len(p.lines))
		}
	})
}

// FuzzWrap: the rows of a line are the line, and no row is wider than the screen unless it is a single character.
func FuzzWrap(f *testing.F) {
	f.Add("a\tb\x01\xffc\u0301\u4e16\u754c", uint8(3))
	f.Add("", uint8(0))
	f.Fuzz(func(t *testing.T, line string, columns uint8) {
		shown, width := cells(line, 0), 1+int(columns)
		if at := strings.IndexFunc(shown, func(r rune) bool { return r < ' ' }); at >= 0 {
			t.Fatalf("%q is shown as %q", line, shown)
		}
		parts := wrap(shown, width)
		if strings.Join(parts, "") != shown {
			t.Fatalf("%q in %d columns is %q", shown, width, parts)
		}
		for _, part := range parts {
			if n := terminal.Cells(part); n > width && n > 2 {
				t.Fatalf("%q in %d columns has the row %q", shown, width, part)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// RS-13: what a terminal would obey is shown instead.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"plain\ttext\n":                "plain\ttext\n",
		"grüße 日本 🙂":                   "grüße 日本 🙂",
		"\x1b]0;PWNED\a":               `\x1b]0;PWNED\x07`,
		"\x1b[31mred\x1b[0m":           `\x1b[31mred\x1b[0m`,
		"100%\rdone\r\n":               `100%\x0ddone\x0d` + "\n",
		"\x7f\u009b2J":                 `\u007f\u009b2J`,
		"\x9b2J":                       `\x9b2J`,
		"\xe2\x82":                     `\xe2\x82`,
		"cut \xf0\x9f\x99":             `cut \xf0\x9f\x99`,
		"gpj.\u202etxe":                `gpj.\u202etxe`,
		"\u2066a\u2069\ufeff\u2028":    `\u2066a\u2069\ufeff\u2028`,
		"tag \U000e0041":               `tag \U000e0041`,
		`a path\x1b`:                   `a path\x1b`,
		"a \ufffd that was one":        "a \ufffd that was one",
		"family 👨\u200d👩\u200d👧 stays": "family 👨\u200d👩\u200d👧 stays",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// RS-13: of what a container writes, colours pass; they end with their line, and hide nothing.
func TestColoured(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m\n":          "\x1b[31mred\x1b[0m\n",
		"\x1b[1;38;5;8mgrey\x1b[m\n":    "\x1b[1;38;5;8mgrey\x1b[m\n",
		"\x1b[31mred\nplain\n":          "\x1b[31mred\x1b[0m\nplain\n",
		"\x1b[31mno end":                "\x1b[31mno end\x1b[0m",
		"\x1b[8mhidden\n":               "hidden\n",
		"\x1b[1;08mhidden\n":            "hidden\n",
		"\x1b[38;2;8;8;8;8mhidden\n":    "hidden\n",
		"\x1b[2J\x1b[1A":                `\x1b[2J\x1b[1A`,
		"\x1b]0;title\a":                `\x1b]0;title\x07`,
		"\x1b]8;;http://a\x1b\\":        `\x1b]8;;http://a\x1b\`,
		"\x1b[":                         `\x1b[`,
		"\x1b[1;\n":                     `\x1b[1;` + "\n",
		"\x1b[?25lm":                    `\x1b[?25lm`,
		"\x1b[" + manyParams + "m":      `\x1b[` + manyParams + "m",
		"a line\r\nand\r":               "a line\n" + `and\x0d`,
		"\x1bc":                         `\x1bc`,
		"\x1b[31m\x1b[31m\u009b31m\x1b": "\x1b[31m\x1b[31m" + `\u009b31m` + "\x1b[0m" + `\x1b`,
	} {
		if got := Coloured(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

var manyParams = strings.Repeat("1;", 40)

// RS-13: a stream is the same however it is cut; a style is not left on between two writes.
func TestWriterCut(t *testing.T) {
	text := "grüße 🙂 \x1b[31mred\x1b[0m \x1b]0;x\a\r\nend\xe2\x82"
	want := Coloured(text)
	for cut := range len(text) {
		f := Filter{Colours: true}
		got := f.Append(nil, []byte(text[:cut]))
		if on := bytes.LastIndex(got, []byte("\x1b[31m")); on >= 0 && !bytes.Contains(got[on:], []byte(reset)) {
			t.Errorf("cut at %d: the style is left on: %q", cut, got)
		}
		got = f.Flush(f.Append(got, []byte(text[cut:])))
		// Within the red word the style is ended and taken up again.
		if got := strings.Replace(string(got), reset+"\x1b[31m", "", 1); got != want {
			t.Errorf("cut at %d: got %q, want %q", cut, got, want)
		}
	}
}

// RS-13: a message cut within a character is whole once the rest has come; what never comes is shown as what it is.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := New(&out)
	for _, b := range []byte("ü\x1b[2J\xc3") {
		if n, err := w.Write([]byte{b}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, want := out.String(), `ü\x1b[2J`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	Flush(w)
	if got, want := out.String(), `ü\x1b[2J\xc3`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if New(w) != w || Own(w) != &out || Output(w) != &out {
		t.Error("a Writer twice, or not the one below")
	}
	if New(nil) != nil || IsTerminal(w) {
		t.Error("nothing is a terminal")
	}
	if file, ok := File(New(os.Stdin)); !ok || file != os.Stdin {
		t.Error("the file below a Writer")
	}
}

// RS-13: whatever comes, however it is cut, nothing comes out that a terminal obeys.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"plain\n", "\x1b[31mred\x1b[0m", "\x1b]0;t\a", "\x9b2J\u009b", "\xe2\x80\xae", "\u202e", "\r\n\r", "\x1b[38;5;8m\x1b[8m", "\x1b[1;"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		once := Text(string(text))
		safe(t, once)
		if again := Text(once); again != once {
			t.Errorf("%q becomes %q, and then %q", text, once, again)
		}
		coloured := Coloured(string(text))
		safe(t, withoutSGR(coloured))
		if cut < 0 || cut > len(text) {
			return
		}
		var strict Filter
		if got := strict.Flush(strict.Append(strict.Append(nil, text[:cut]), text[cut:])); string(got) != once {
			t.Errorf("cut at %d: %q, whole: %q", cut, got, once)
		}
		loose := Filter{Colours: true}
		safe(t, withoutSGR(string(loose.Flush(loose.Append(loose.Append(nil, text[:cut]), text[cut:])))))
	})
}

// safe tells whether a terminal shows everything, by rules of its own.
func safe(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r)) {
			t.Errorf("%U in %q", r, text)
		}
	}
}

// withoutSGR takes the colours out: ESC, [, digits and semicolons, m.
func withoutSGR(text string) string {
	var out strings.Builder
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			if rest = strings.TrimLeft(rest, "0123456789;"); strings.HasPrefix(rest, "m") {
				text = rest[1:]
				continue
			}
		}
		out.WriteByte(text[0])
		text = text[1:]
	}
	return out.String()
}

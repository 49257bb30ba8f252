// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"strings"
	"testing"
)

// Lines are broken where a person would, and what is short, or cannot be broken, stays.
func TestBroken(t *testing.T) {
	word := strings.Repeat("x", 50)
	for name, c := range map[string]struct{ old, want string }{
		"short": {"package p\n\nvar a = f(1, 2)\n", ""},
		"arguments": {"package p\n\nvar a = f(" + word + ", " + word + ", " + word + ")\n",
			"package p\n\nvar a = f(" + word + ", " + word + ",\n\t" + word + ")\n"},
		"outer before inner": {"package p\n\nvar a = f(1, " + word + ", 2, g(3, " + word + ", 4, 5))\n",
			"package p\n\nvar a = f(1, " + word + ", 2,\n\tg(3, " + word + ", 4, 5))\n"},
		"or before and": {"package p\n\nvar a = " + word + " || " + word + " && b || c && " + word + "\n",
			"package p\n\nvar a = " + word + " || " + word + " && b ||\n\tc && " + word + "\n"},
		"a list that goes on": {
			"package p\n\nvar a = []int{\n\t" + word + ", " + word + ", " + word + ",\n\t1, 2,\n}\n",
			"package p\n\nvar a = []int{\n\t" + word + ", " + word + ",\n\t" + word + ", 1, 2,\n}\n"},
		"results stay together": {
			"package p\n\nfunc f(a " + word + ", bb " + word + ") (aLongName int, anotherOne error) { return }\n",
			"package p\n\nfunc f(a " + word + ",\n\tbb " + word +
				") (aLongName int, anotherOne error) {\n\treturn\n}\n"},
		"a comment": {"package p\n\n// a " + word + " " + word + " " + word + "\n// b\nvar a int\n",
			"package p\n\n// a " + word + " " + word + "\n// " + word + " b\nvar a int\n"},
		"a list in a comment": {"package p\n\n// a:\n//   - " + word + " " + word + " " + word + "\nvar a int\n", ""},
		"a comment at the end": {"package p\n\nvar a = f(" + word + ") // " + word + " " + word + "\n",
			"package p\n\n// " + word + " " + word + "\nvar a = f(" + word + ")\n"},
		"a string":         {"package p\n\nvar a = \"" + word + ", " + word + ", " + word + "\"\n", ""},
		"several lines":    {"package p\n\nvar a = `" + word + ", " + word + ", " + word + "\n`\n", ""},
		"a sign is no sum": {"package p\n\nvar a = f(" + word + word + "(+" + word + "))\n", ""},
		"a directive":      {"package p\n\n//go:generate " + word + " " + word + " " + word + "\n", ""},
		"a function in line": {"package p\n\nfunc f() string { return " + word + word + word + " }\n",
			"package p\n\nfunc f() string {\n\treturn " + word + word + word + "\n}\n"},
	} {
		if c.want == "" {
			c.want = c.old
		}
		if got, err := Broken([]byte(c.old)); err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
}

// What would be another program is not written.
func TestSame(t *testing.T) {
	old := "package p\n\n// one two\nfunc f() { g(1, 2) }\n"
	for text, want := range map[string]bool{
		old: true,
		"package p\n\n// one\n// two\nfunc f() {\n\tg(1,\n\t\t2)\n}\n": true,
		"package p\n\n// one\nfunc f() { g(1, 2) }\n":                  false,
		"package p\n\n// one two\nfunc f() { g(2, 1) }\n":              false,
		"package p\n\n// one two\nfunc f() { g(1); g(2) }\n":           false,
	} {
		if err := same([]byte(old), []byte(text)); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Whatever the file, breaking its lines keeps it the same, or says that it cannot.
func FuzzBroken(f *testing.F) {
	f.Add("package p\n\nvar a = f(1, 2) // three\n")
	f.Add("package p\n\nfunc (a B) c(d, e int) (f error) { return g(func() { h() }, `i\nj`) }\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Broken([]byte(text))
		if err != nil {
			return
		}
		if string(got) == text {
			return // nothing was long, Go or not
		}
		if err := same([]byte(text), got); err != nil {
			t.Errorf("%v: %q", err, got)
		}
	})
}

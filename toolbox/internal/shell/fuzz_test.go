// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// FuzzRewritten rewrites programs: what was one is one afterwards.
func FuzzRewritten(f *testing.F) {
	for _, s := range []string{"a & b & wait $!", "echo $$ $0 >&3 3<f", "x=$(a 3>&1 1>&2 2>&3)", "f() { ls & }; f", "cat <<E\n$!\nE\n", "a | b &", "{ a; } 3>x &", "if a; then b & fi", "echo ${!x} ${$}", "((1&2))",
		"trap a TERM; b >f && c | d || x=$(e; f >g) && (h); while i <j; do k=`l`; done >m; n() { o; } 2>p", "trap a TERM; time b >f <<E && c\nx\nE\n! d | e",
		"()0", "<<\"\"\n\n", "<$\\\\0", ">\\0$\\\\0", "cat 3<<-A <>f\n\ta\"$b\"\\\\\\\"\nA\nx=a\\ b\\':~/c; echo \"${y:-'d'}\" ${10} ${1+\"$@\"}",
		"set -e; if (a; b); then for i in 1; do { c && break; d; }; done; fi; f() { x=$(g | h) && ! i; }; trap j ERR",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if strings.ContainsAny(source, "\x00\v\f") { // the library loses the last two where it writes
			return
		}
		out, err := new(rewriter).rewritten(source, place{})
		if err != nil {
			return
		}
		if plain, err := syntax.NewParser().Parse(strings.NewReader(source), ""); err != nil || !stands(text(plain)) {
			return // the library cannot write what it has read
		}
		if !stands(out) {
			t.Errorf("%q becomes %q", source, out)
		}
	})
}

func stands(source string) bool {
	_, err := syntax.NewParser().Parse(strings.NewReader(source), "")
	return err == nil
}

// FuzzRead reads the flags of read.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"-r a b", "-t 1.5 x", "-n 3 -d ; x", "-N", "-t 1e300", "-t nan", "-u 3 -sp ? x", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		r, special, err := parseRead(args)
		if err == nil && (r.count < 0 || !special && r.timeout >= 0 || strings.HasPrefix(line, "-t ") && r.timeout < 0) {
			t.Errorf("%q: %+v", args, r)
		}
	})
}

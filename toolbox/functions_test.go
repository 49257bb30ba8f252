// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"testing"
)

// A subshell has functions of its own, also such as are called as a command of the toolbox; those that the last part of a
// pipeline makes while the others run are not theirs, and disturb nobody. Where dash is on the machine, it has to say the same.
func TestFunctionsOfSubshells(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"called as one of ours":      {`(kill() { echo mine $1; }; kill 1); { jobs() { echo jobs; }; jobs; } | cat; type kill | head -c 4; echo`, "mine 1\njobs\nkill\n"},
		"the shell's are there, too": {`kill() { echo mine $1; }; (kill 1); echo $(kill 2); kill 3 | cat; kill 4`, "mine 1\nmine 2\nmine 3\nmine 4\n"},
		"unset in one":               {`help() { echo mine; }; (unset -f help; help() { echo other; }; help); help`, "other\nmine\n"},
		"in the background":          {`(f() { echo in; }; { f; f; } & wait); f() { echo out; }; f & wait`, "in\nin\nout\n"},
		"made beside others": {`i=0; while [ $i -lt 4000 ]; do true; i=$((i+1)); done |
			{ n=0; while [ $n -lt 4000 ]; do eval "f$n() { :; }"; n=$((n+1)); done; cat; echo $n; }`, "4000\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := printedBy(t, command(t, t.TempDir(), "sh", "-c", c.script)); got != c.want {
				t.Errorf("%s\n got %q\nwant %q", c.script, got, c.want)
			}
			dash, err := exec.LookPath("dash")
			if err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), hangs)
			defer cancel()
			theirs := exec.CommandContext(ctx, dash, "-c", c.script)
			theirs.Dir = t.TempDir()
			if got := printedBy(t, theirs); got != c.want {
				t.Errorf("dash: %s\n got %q\nwant %q", c.script, got, c.want)
			}
		})
	}
}

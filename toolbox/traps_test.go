// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trap's action runs between commands, in the shell itself: what it prints does not go where the next command's output
// goes, its exit ends the shell, and $? is afterwards what it was. Each as an argument, as a file and as standard input.
func TestTrapsBetweenCommands(t *testing.T) {
	const on = `trap 'echo T' TERM; `
	for name, c := range map[string]struct {
		script, want string
		code         int
	}{
		"redirection":            {on + `kill -TERM $$; echo a >f; echo -; cat f`, "T\n-\na\n", 0},
		"substitution":           {on + `kill -TERM $$; x=$(echo in); echo "<$x>"; kill -TERM $$; echo "<$(echo in)>"`, "T\n<in>\nT\n<in>\n", 0},
		"exit before one":        {`trap 'exit 4' TERM; kill -TERM $$; x=$(echo in); echo never`, "", 4},
		"exit before a subshell": {`trap 'exit 4' TERM; kill -TERM $$; (echo never); echo never`, "", 4},
		"exit before a pipeline": {`trap 'exit 4' TERM; kill -TERM $$; echo never | cat; echo never`, "", 4},
		"pipeline":               {on + `kill -TERM $$; echo a | wc -l`, "T\n1\n", 0},
		"within a substitution":  {on + `x=$(kill -TERM $$; echo in); echo "<$x>"; (kill -TERM $$; echo in); { kill -TERM $$; echo in; } | wc -l; echo end`, "T\n<in>\nin\nT\n1\nT\nend\n", 0},
		"exit within one":        {`trap 'exit 4' TERM; x=$(kill -TERM $$; echo in >f; echo in); cat f; echo never`, "", 4},
		"exit within a subshell": {`trap 'exit 4' TERM; (kill -TERM $$; echo in); echo never`, "in\n", 4},
		"exit within a pipeline": {`trap 'exit 4' TERM; { kill -TERM $$; echo in; } | cat; echo never`, "in\n", 4},
		"a subshell's wait":      {on + `x=$(kill -TERM $$; sleep 0.1 & wait $!; echo $?); echo "<$x>"`, "T\n<0>\n", 0},
		"a subshell's own":       {`(trap 'echo T' TERM; kill -TERM $$; echo in); x=$(trap 'echo U' USR1; kill -USR1 $$; :); echo $x`, "T\nin\nU\n", 0},
		"a subshell ends by INT": {`trap 'echo T; exit 3' INT; (sh -c 'kill -INT $PPID'; while :; do :; done); echo never`, "T\n", 3},
		"below a function":       {`g() { kill -TERM $$; echo in >f; echo in; }` + "\n" + on + `x=$(g | cat); echo "<$x>"; set -- a; (exit 7); x=$(echo $? $1); echo $x; set -e; y=$(false | cat; ! true; echo $?); echo $y`, "T\n<in>\n7 a\n1\n", 0},
		"if":                     {on + `if kill -TERM $$; echo a >f; then kill -TERM $$; x=$(cat f); echo $x; fi`, "T\nT\na\n", 0},
		"while":                  {on + `n=; while kill -TERM $$; echo a >f; [ "$n" != aa ]; do kill -TERM $$; n=$n$(cat f); done; echo $n`, "T\nT\nT\nT\nT\naa\n", 0},
		"last of a pipeline":     {on + `{ kill -TERM $$; >sent; } | echo $(until [ -e sent ]; do :; done; echo x) >f; echo -; cat f`, "T\n-\nx\n", 0},
		"last, with descriptors": {`exec 3>&1; ` + on + `{ kill -TERM $$; >sent; } | echo $(until [ -e sent ]; do :; done; echo x) >f; echo -; cat f`, "T\n-\nx\n", 0},
		"in a substitution":      {on + `echo "$(kill -TERM $$; echo in)" >f; echo -; cat f; echo "$(kill -TERM $$; echo in)"; echo -`, "T\n-\nin\nin\nT\n-\n", 0},
		"in one, with another":   {on + `x=$(kill -TERM $$; echo x) sh -c 'echo $x' >f; echo a >"$(kill -TERM $$; echo g)"; cat f g; trap 'exit 4' TERM; echo "$(kill -TERM $$; echo in)"; echo never`, "T\nT\nx\na\nin\n", 4},
		"in a here-document":     {on + `cat <<E >f` + "\n$(kill -TERM $$; echo in)\nE\n" + `echo -; cat f; kill -TERM $$; echo "$(echo b)" >f; cat f`, "T\n-\nin\nT\nb\n", 0},
		"in exec's":              {on + `exec 3>&1 >"$(kill -TERM $$; echo f)"; echo a; echo - >&3; cat f >&3`, "-\nT\na\n", 0},
		"a loop's input":         {on + `kill -TERM $$; while read l; do echo "<$l>"; done <<E` + "\na\nb\nE\n", "T\n<a>\n<b>\n", 0},
		"here-document":          {on + `kill -TERM $$; cat <<E >f` + "\n$(echo a)\nE\n" + `echo -; cat f`, "T\n-\na\n", 0},
		"case and for":           {on + `kill -TERM $$; for i in $(echo a); do kill -TERM $$; case $(echo $i) in a) echo c;; esac; done`, "T\nT\nc\n", 0},
		"function":               {"g() { echo in; } >f\nh() { echo h >g; }\n" + on + "kill -TERM $$; g; cat f; kill -TERM $$; h; cat g", "T\nin\nT\nh\n", 0},
		"within a function's":    {on + `g() { kill -TERM $$; echo in; } >f; g; echo -; cat f`, "-\nT\nin\n", 0}, // as other shells do
		"within a block's":       {on + `{ kill -TERM $$; echo in; } >f; echo -; cat f`, "-\nT\nin\n", 0},
		"and, or":                {on + `kill -TERM $$ && echo a >f && cat f; sh -c 'kill -TERM $PPID; exit 7' || echo $? >f; cat f`, "T\na\nT\n7\n", 0},
		"set -e after a failure": {`set -e; trap 'echo T $?' TERM; kill -TERM $$; ! true; kill -TERM $$; x=$(echo $?) || :; ! sh -c 'kill -TERM $PPID'; echo $? >f; cat f; (exit 5); echo never`, "T 0\nT 0\nT 1\n1\n", 5},
		"$? is kept":             {`trap 'echo T; false' TERM; sh -c 'kill -TERM $PPID; exit 7'; echo $? >f; cat f; (exit 9); x=$(echo $?); echo $x`, "T\n7\n9\n", 0},
		"set -e":                 {`set -e; ` + on + `kill -TERM $$; false || echo a >f; ! true >f; if false >f; then :; fi; false | cat; echo b; x=$(false); echo never`, "T\nb\n", 1},
		"set -e in the action":   {`set -e; trap 'echo T; (exit 3); echo never' TERM; kill -TERM $$; echo never >f`, "T\n", 3},
		"eval and source":        {`echo 'kill -TERM $$; echo a >f; cat f' >s; ` + on + `eval "$(cat s)"; . ./s`, "T\na\nT\na\n", 0},
		"exec":                   {on + `kill -TERM $$; exec 3>&1 >f; echo a; echo - >&3; cat f >&3`, "T\n-\na\n", 0},
		"no trap any more":       {`trap 'trap - TERM; echo T; kill -TERM $$' TERM; kill -TERM $$; echo never >f; echo never`, "T\n", 143},
		"set -x shows nothing":   {on + `kill -TERM $$; set -x; echo a >f; cat f`, "T\n+ echo a\n+ cat f\na\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range []string{"argument", "file", "standard input"} {
				dir := t.TempDir()
				cmd := command(t, dir, "sh", "-c", c.script)
				switch way {
				case "file":
					if err := os.WriteFile(filepath.Join(dir, "script"), []byte(c.script), 0o644); err != nil {
						t.Fatal(err)
					}
					cmd = command(t, dir, "sh", "script")
				case "standard input":
					cmd = command(t, dir, "sh")
					cmd.Stdin = strings.NewReader(c.script)
				}
				out, _ := cmd.CombinedOutput()
				code := cmd.ProcessState.ExitCode()
				if code < 0 {
					code = 143
				}
				if string(out) != c.want || code != c.code {
					t.Errorf("as %s: %s\n got %q, code %d\nwant %q, code %d", way, c.script, out, code, c.want, c.code)
				}
			}
		})
	}
}

// A script on standard input: each command is run once, also before a here-document's lines, and the last one needs no
// end of line.
func TestShellStreams(t *testing.T) {
	for in, want := range map[string]string{
		"echo a; cat <<E; echo b\nin\nE\necho c":     "a\nin\nb\nc\n",
		"echo a; cat <<A; cat <<B\n1\nA\n2\nB\n":     "a\n1\n2\n",
		"echo a; f() {\necho b\n}; f; echo \"c\nd\"": "a\nb\nc\nd\n",
		"cat\nhello":   "hello",
		"echo a # end": "a\n",
		"":             "",
	} {
		cmd := command(t, t.TempDir(), "sh")
		cmd.Stdin = strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%q: %q, %v, want %q", in, out, err, want)
		}
	}
}

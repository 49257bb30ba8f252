// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A subshell has functions of its own, also such as are called as a command of the toolbox; those that the last part of a
// pipeline makes while the others run are not theirs, and disturb nobody. Where dash is on the machine, it has to say the same.
func TestFunctionsOfSubshells(t *testing.T) {
	likeDash(t, map[string][2]string{
		"called as one of ours":      {`(kill() { echo mine $1; }; kill 1); { jobs() { echo jobs; }; jobs; } | cat; type kill | head -c 4; echo`, "mine 1\njobs\nkill\n"},
		"the shell's are there, too": {`kill() { echo mine $1; }; (kill 1); echo $(kill 2); kill 3 | cat; kill 4`, "mine 1\nmine 2\nmine 3\nmine 4\n"},
		"unset in one":               {`help() { echo mine; }; (unset -f help; help() { echo other; }; help); help`, "other\nmine\n"},
		"in the background":          {`(f() { echo in; }; { f; f; } & wait); f() { echo out; }; f & wait`, "in\nin\nout\n"},
		"made beside others": {`i=0; while [ $i -lt 4000 ]; do true; i=$((i+1)); done |
			{ n=0; while [ $n -lt 4000 ]; do eval "f$n() { :; }"; n=$((n+1)); done; cat; echo $n; }`, "4000\n"},
	})
}

// likeDash runs scripts, which have to print what is wanted, by name. Where dash is on the machine, it has to say the same, but for those
// that only bash knows: their names begin so.
func likeDash(t *testing.T, scripts map[string][2]string) {
	for name, c := range scripts {
		script, want := c[0], c[1]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := printedBy(t, command(t, t.TempDir(), "sh", "-c", script)); got != want {
				t.Errorf("%s\n got %q\nwant %q", script, got, want)
			}
			dash, err := exec.LookPath("dash")
			if err != nil || strings.HasPrefix(name, "bash") {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), hangs)
			defer cancel()
			theirs := exec.CommandContext(ctx, dash, "-c", strings.ReplaceAll(script, "sh -c", dash+" -c"))
			theirs.Dir, theirs.WaitDelay = t.TempDir(), time.Minute
			if got := printedBy(t, theirs); got != want {
				t.Errorf("dash: %s\n got %q\nwant %q", script, got, want)
			}
		})
	}
}

// The builtins' options, and what is behind "command".
func TestBuiltins(t *testing.T) {
	likeDash(t, map[string][2]string{
		"cd --":                  {`mkdir d; d=$(cd -- d && pwd); echo ${d##*/}; cd -- -x 2>/dev/null || echo none`, "d\nnone\n"},
		"cd -P":                  {`mkdir -p d/e; ln -s d/e l; (cd l; pwd | tail -c 2); (cd -P l; pwd | tail -c 4); (cd -L l; pwd | tail -c 2); cd -PL l; cd -P ..; pwd | tail -c 2`, "l\nd/e\nl\nd\n"},
		"cd -":                   {`mkdir d; cd d; cd - >/dev/null; cd -L d; pwd | tail -c 2; cd -P - >/dev/null; ls`, "d\nd\n"},
		"cd -x":                  {`cd -x 2>/dev/null; echo $?`, "2\n"},
		"command kill":           {`{ command kill -0 $$; echo $?; sleep 60 & command kill $!; command wait $!; echo $?; } 2>/dev/null`, "0\n143\n"},
		"command .":              {`echo 'false & wait $!; echo $?' >lib; command . ./lib`, "1\n"},
		"command trap":           {`command trap 'echo T' USR1; kill -USR1 $$; echo end`, "T\nend\n"},
		"command read":           {`echo 'a b' | { command read x y; echo $y; }`, "b\n"},
		"command eval, exit":     {`(command eval 'f() { command exit 3; }'; f); echo $?`, "3\n"},
		"nothing, called":        {`x=; $x & wait $!; echo $?; set --; "$@" & wait $!; echo $?`, "0\n0\n"},
		"umask in files":         {`umask 002; : >f; stat -c %a f; umask 077; : >g; stat -c %a g; umask; umask -1 2>/dev/null || umask`, "664\n600\n0077\n0077\n"},
		"exec of a variable":     {`f='my file'; exec 3>$f; echo x >&3; exec 3>&-; ls; f='*'; exec 4<"my file"; cat <&4`, "my file\nx\n"},
		"bash: exec of none":     {`exec 3<$none; echo $?`, "sh: open : file does not exist\n1\n"},
		"wait of a subshell":     {`(sleep 60 & echo $! >p); sleep 0.1 & wait; kill $(cat p) && echo there; sleep 60 & (wait; echo sub); kill $!`, "there\nsub\n"},
		"wait in a subshell":     {`(sh -c 'exit 3' & wait $!; echo $?)`, "3\n"},
		"unset, inherited":       {`FOO=1 sh -c 'unset FOO; sh -c "echo \${FOO-unset}"; { echo ${FOO-unset}; } & wait'`, "unset\nunset\n"},
		"PWD":                    {`sh -c 'cd /; printenv PWD; sh -c "echo \$PWD"'`, "/\n/\n"},
		"set, in the background": {`FOO=a sh -c 'FOO=b printenv FOO & wait; FOO=c printenv FOO | cat; printenv FOO'`, "b\nc\na\n"},
		"/dev/stderr":            {`{ echo a >/dev/stderr; } 2>f; cat f; { sh -c 'echo c' >>/dev/stderr; } 2>>f; cat f`, "a\na\nc\n"},
		"/dev/stdout":            {`x=$(echo a >/dev/stdout); echo "<$x>"; { echo b 2>/dev/stdout >/dev/stderr; } 2>f; cat f; exec 3>/dev/stdout; echo c >&3`, "<a>\nb\nc\n"},
		"exported and not":       {`export X=1; unset X; X=2; sh -c 'echo ${X-unset}'; (export X; sh -c 'echo $X'); sh -c 'echo ${X-unset}'`, "unset\n2\nunset\n"},
	})
}

// An exit in a trap on EXIT or ERR is the shell's, and what follows it in the trap is left out; a trap that a sourced file has set is a trap.
func TestExitInTraps(t *testing.T) {
	likeDash(t, map[string][2]string{
		"of EXIT":                {`sh -c 'trap "echo a; exit 3; echo never" EXIT; true'; echo $?`, "a\n3\n"},
		"without a status":       {`sh -c 'trap "echo a; true; exit; echo never" EXIT; exit 4'; echo $?`, "a\n4\n"},
		"in a function":          {`sh -c 'f() { echo f; exit 5; }; trap "f; echo never" EXIT; false'; echo $?`, "f\n5\n"},
		"from standard input":    {`printf 'trap "echo a; exit 3" EXIT\ntrue\n' | { sh -c 'sh'; echo $?; }`, "a\n3\n"},
		"in a loop":              {`sh -c 'trap "for i in 1 2 3; do echo \$i; exit 7; done" EXIT; :'; echo $?`, "1\n7\n"},
		"in one without end":     {`sh -c 'trap "while :; do echo a; exit 0; done" EXIT; false'; echo $?; sh -c 'trap "until false; do echo b; exit 3; done" EXIT'; echo $?`, "a\n0\nb\n3\n"},
		"set by a file":          {`echo 'trap "echo T" TERM' >lib; sh -c '. ./lib; sh -c "kill -TERM \$PPID"'; echo $?`, "T\n0\n"},
		"bash: of ERR":           {`sh -c 'trap "exit 6" ERR; trap "echo bye" EXIT; false; echo on'; echo $?`, "bye\n6\n"},
		"bash: of both":          {`sh -c 'trap "echo err; exit 7" ERR; trap "echo bye; exit 9" EXIT; (exit 3); echo on'; echo $?`, "err\nbye\n9\n"},
		"bash: exit is no error": {`sh -c 'trap "echo err; exit 7" ERR; trap "echo bye" EXIT; exit 3'; echo $?`, "bye\n3\n"},
		"bash: the error's":      {`sh -c 'trap "echo err; exit" ERR; false; echo on'; echo $?`, "err\n1\n"},
	})
}

// A function that ends the shell ends the part of a pipeline that calls it, and no more.
func TestFunctionsThatExit(t *testing.T) {
	likeDash(t, map[string][2]string{
		"in the last part":  {`die() { echo "$1"; exit 3; }; echo a | while read x; do die bad; done || echo "failed $?"; echo end`, "bad\nfailed 3\nend\n"},
		"through another":   {`a() { b; }; b() { exit 4; }; echo x | a; echo $?`, "4\n"},
		"of itself":         {`f() { [ $1 -gt 3 ] && exit $1; f $(($1+1)); }; echo x | f 0; echo $?`, "4\n"},
		"in the first part": {`die() { exit 3; }; die | cat; echo $?`, "0\n"},
		"by exec":           {`echo a | exec cat; echo after`, "a\nafter\n"},
		"in the background": {`die() { exit 6; }; { echo x | die; echo $?; } & wait; { trap 'exit 7' EXIT; :; } & wait $!; echo $?`, "6\n7\n"},
		"made later":        {`echo 'die() { exit 5; }' >lib; . ./lib; eval 'echo x | die; echo $?'`, "5\n"},
	})
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Scripts: processes in the background, their ids and ends, traps, descriptors, read.
func TestShellScripts(t *testing.T) {
	for name, c := range map[string]struct {
		line, want string
		code       int
	}{
		"$$ is this process":             {`test "$(cat /proc/$$/comm)" = "$(cat /proc/self/comm)" || readlink /proc/$$/exe >/dev/null && echo yes`, "yes\n", 0},
		"$! is the program":              {`sleep 60 & p=$!; until c=$(tr '\000' ' ' </proc/$p/cmdline); [ "${c#*sleep}" != "$c" ]; do :; done; printf %s "$c"; kill $p; wait $p; echo $?`, `(sh & sleep 60 [0-9]+ |sleep 60 )143\n`, 0},
		"$$ in the background":           {`echo $$ >a; (echo $$ >b) & wait; cmp a b && echo same`, "same\n", 0},
		"$0":                             {`echo 'echo $0 $(echo $0)' >f; sh f; sh <f; echo 'echo $0 & wait' >g; sh ./g; sh -c 'echo $0' me`, "f f\nsh sh\n./g\nme\n", 0},
		"exit codes":                     {`(exit 7) & a=$!; false & b=$!; wait $a; echo $?; wait $b; echo $?; wait; echo $?; wait 999999; echo $?`, "7\n1\n0\nwait: 999999: it is not a child of this shell\n127\n", 0},
		"wait for the last one named":    {`(exit 3) & b=$!; sleep 0.2 & a=$!; wait $b $a; echo $?; (exit 3) & b=$!; sleep 0.2 & a=$!; wait $a $b; echo $?`, "0\n3\n", 0},
		"a trap in the background":       {`{ trap 'echo bye; exit 3' USR1; echo up >up; sh -c 'until [ -e go ]; do :; done'; } & until [ -e up ]; do :; done; kill -USR1 $!; echo >go; wait $!; echo $?`, "bye\n3\n", 0},
		"a trap under set -e":            {`set -e; trap 'echo got' USR1; sh -c 'kill -USR1 $PPID; exit 1' || echo continues; echo end`, "got\ncontinues\nend\n", 0},
		"wait -n":                        {`sleep 60 & p=$!; (exit 4) & wait -n; echo $?; kill $p`, "4\n", 0},
		"jobs":                           {`sleep 60 & jobs; jobs -p | grep -c .; kill %1; wait; jobs`, `\[1\]\+  Running                 sleep 60 &\n1\n`, 0},
		"no such job":                    {`kill %3; fg`, "kill: %3: there is no such job \\(see: jobs\\)\nfg: there is job control only in a shell on a terminal\n", 1},
		"variables go along":             {`a='x  y'; l=(1 '2 3'); declare -A m=([k]='v w'); f() { echo "f $1 $a ${l[1]} ${m[k]}"; }; f p & wait`, "f p x  y 2 3 v w\n", 0},
		"pipefail goes along":            {`set -euo pipefail; { (exit 5) | cat; } & wait $! || echo $?; set +o pipefail; { (exit 5) | cat; } & wait $!; echo $?`, "5\n0\n", 0},
		"parameters go along":            {`set -- a 'b c'; echo "$# $2" & wait`, "2 b c\n", 0},
		"options go along":               {`set -u; echo $nothing & wait $!; echo $?`, ".*nothing: unbound variable\n1\n", 0},
		"standard input is the script's": {`cat & wait; cat`, "in\n", 0},
		"redirections":                   {`echo x >f & wait; cat f; { echo a; echo b >&2; } >g 2>&1 & wait; cat g; cat <<E & wait` + "\nhere\nE", "x\na\nb\nhere\n", 0},
		"in a loop and a function":       {`g() { for i in 1 2 3; do (exit $i) & p="$p $!"; done; for i in $p; do wait $i; echo $?; done; }; g`, "1\n2\n3\n", 0},
		"of a substitution":              {`p=$(sleep 60 >/dev/null 2>&1 & echo $!); kill $p && echo killed; echo $(echo sub &)`, "killed\nsub\n", 0},
		"in eval and source":             {`eval 'sleep 60 & kill $!; wait $!; echo $?'; echo '(exit 5) & wait $!; echo $1 $?' >s; . ./s arg`, "143\narg 5\n", 0},
		"a pipeline":                     {`echo one | tr a-z A-Z & wait; wait $!`, "ONE\nwait: .*", 127},

		"trap TERM":              {`trap 'echo got; exit 4' TERM; trap 'echo bye $?' EXIT; kill -TERM $$; echo never`, "got\nbye 4\n", 4},
		"trap goes on":           {`trap 'echo got' USR1; false; kill -USR1 $$; echo after $?; trap - USR1; trap`, "got\nafter 0\n", 0},
		"trap ends wait":         {`trap 'echo got' TERM; sleep 60 & p=$!; (kill -TERM $$) & wait $p; echo $?; kill $p`, "got\n143\n", 0},
		"trap after the program": {`trap 'echo got' TERM; sh -c "kill -TERM $$; echo program"`, "program\ngot\n", 0},
		"trap at the end":        {`trap 'echo got' TERM; trap 'echo bye' EXIT; sh -c "kill -TERM $$; exit 3"`, "got\nbye\n", 3},
		"trap that ignores":      {`trap '' INT; kill -INT $$; sh -c 'kill -INT $$'; echo lived; trap`, "lived\ntrap -- '' INT\n", 0},
		"trap by number":         {`trap 'echo a' 10 12; trap; trap - SIGUSR1 12; trap; trap -l | grep -c SIGTERM`, "trap -- 'echo a' USR1\ntrap -- 'echo a' USR2\n1\n", 0},
		"trap of nothing":        {`trap 'x' NOPE`, "trap: NOPE is not a signal .*\n", 1},
		"trap in its own words":  {`trap 'sleep 60 & kill $!; wait $!; echo $?' USR1; kill -USR1 $$; :`, "143\n", 0},

		"trap of a subshell":         {`trap 'echo main' EXIT; (trap 'echo sub $?' EXIT; (exit 1); echo $?; exit 3); echo $?; x=$(trap 'echo bye' EXIT; echo in); echo $x`, "1\nsub 3\n3\nin bye\nmain\n", 0},
		"trap under set -e":          {`(set -e; trap 'echo bye' EXIT; false; echo never); echo $?; (trap 'echo never' EXIT; trap - EXIT; exit 2); echo $?`, "bye\n1\n2\n", 0},
		"exec 3<":                    {`printf '1\n2\n3\n' >f; exec 3<f; read a <&3; cat <&3; exec 3<&-; cat <&3; echo $a`, "2\n3\nopen /dev/fd/3: descriptor 3 is not open\n1\n", 0},
		"exec 3>":                    {`exec 3>f; echo a >&3; sh -c 'echo b >&3'; (echo c >&3) & wait; exec 3>&-; cat f`, "a\nb\nc\n", 0},
		"exec 3>&1":                  {`exec 3>&1 >f; echo file; echo out >&3; exec >&3 3>&-; cat f`, "out\nfile\n", 0},
		"swapping":                   {`{ echo err >&2; echo out; } 3>&1 1>&2 2>&3 3>&- | sed 's/^/pipe: /'`, "(out\npipe: err\n|pipe: err\nout\n)", 0},
		"swapping in a substitution": {`o=$({ echo err >&2; echo out; exit 4; } 3>&1 1>&2 2>&3); echo "$? <$o>"; set -e; o=$(false 3>&1 | true); o=$(echo a; { echo b >&3; sh -c 'echo c >&3'; } 3>&1; false | true); echo $o`, "out\n4 <err>\na b c\n", 0},
		"pipefail of a substitution": {`o=$({ (exit 5) | true; echo $?; } 3>&1); echo $o; set -o pipefail; o=$({ (exit 5) | true; echo $?; } 3>&1); echo $o`, "0\n5\n", 0},
		"pipefail of a subshell":     {`(set -o pipefail; { (exit 5) | true; } & wait $!; echo $?); { (exit 5) | true; } & wait $!; echo $?`, "5\n0\n", 0},
		"of a loop":                  {`printf 'a\nb\n' >f; while read l <&3; do echo "<$l>"; done 3<f; while read -u 4 l; do echo "$l."; done 4<f`, "<a>\n<b>\na.\nb.\n", 0},
		"of one program":             {`echo x >f; cat /dev/fd/5 5<f; echo $?; false 5<f; echo $?; true 5<nope; echo $?`, "x\n0\n1\nsh: open .*/nope: no such file or directory\n1\n", 0},
		"by a variable":              {`exec 7>f; fd=7; echo x >&$fd; cat f; echo both >&g; cat g; echo over >|g; cat g`, "x\nboth\nover\n", 0},

		"read -t":                    {`(sleep 60 & echo $! >p; wait) 2>/dev/null | { read -t 0.05 x; echo $?; until test -s p; do :; done; kill $(cat p); }`, "142\n", 0},
		"read -t of what never ends": {`read -t 0.05 x </dev/zero; echo $?; yes 'a\' | { read -t 0.05 x; echo $?; }; read -t 60 -n 3 x </dev/zero; echo $?`, "142\n142\n0\n", 0},
		"read -n, -N, -d":            {`read -n 2 a <<<abcd; echo $a; read -d : a b <<<'1 2 3:4'; echo "$a|$b"; printf 'x\ny' >f; read -N 3 a <f; echo "$a"; printf 'a\000b\000' >g; while read -d '' w; do echo $w; done <g`, "ab\n1\\|2 3\nx\ny\na\nb\n", 0},
		"read at the end":            {`read -t 60 a </dev/null; echo $?; read -t 60 a <<<' yes '; echo "$?$a"; read -t 0 </dev/null; echo $?; read -q`, "1\n0yes\n0\nread: unknown flag -q: .*\n", 2},
		"history is a command":       {`history; echo $?`, "0\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := command(t, dir, "sh", "-c", c.line)
			cmd.Stdin = strings.NewReader("in\n")
			out, _ := cmd.CombinedOutput()
			if !whole(c.want).Match(out) || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("%s\n got %q, code %d\nwant %q, code %d", c.line, out, cmd.ProcessState.ExitCode(), c.want, c.code)
			}
		})
	}
}

// Job control: Ctrl-Z, fg, bg, jobs, kill %1, what is said of jobs that end.
func TestJobControl(t *testing.T) {
	dir := t.TempDir()
	k := converse(t, dir, "sh")
	k.expect("$ ")
	do := func(line, want string) {
		t.Helper()
		k.send(line + "\r")
		k.expect("\r\n" + want + "$ ")
	}
	k.send("cat\r")
	k.expect("\r\n")
	k.busy()
	k.send("hello\r")
	k.expect("hello\r\nhello\r\n")
	k.send("\x1a")
	k.expect("[1]+  Stopped                 cat\r\n$ ")
	do("echo $?", "148\r\n")
	do("jobs", "[1]+  Stopped                 cat\r\n")
	k.send("fg\r")
	k.expect("\r\ncat\r\n")
	k.busy()
	k.send("again\r")
	k.expect("again\r\nagain\r\n")
	k.send("\x04")
	k.expect("$ ")
	do("jobs", "")

	k.send("sleep 60 &\r")
	k.expect("\r\n[1] ")
	k.expect("$ ")
	k.send("sleep 61\r")
	k.expect("\r\n")
	k.busy()
	k.send("\x1a")
	k.expect("[2]+  Stopped                 sleep 61\r\n$ ")
	do("jobs", "[1]-  Running                 sleep 60 &\r\n[2]+  Stopped                 sleep 61\r\n")
	do("bg", "[2]+ sleep 61 &\r\n")
	do("jobs %2", "[1]-  Running                 sleep 60 &\r\n[2]+  Running                 sleep 61 &\r\n")
	k.send("kill %1; wait %1\r")
	k.expect("$ ")
	k.send("fg %sleep\r")
	k.expect("\r\nsleep 61\r\n")
	k.busy()
	k.send("\x03")
	k.expect("$ ")
	do("echo $?", "130\r\n")
	do("jobs", "")

	k.send("sleep 60 | cat\r") // both are one job
	k.busy()
	k.send("\x1a")
	k.expect("Stopped                 sleep 60 | cat\r\n$ ")
	k.send("kill %%\r")
	k.expect("$ ")
	do("wait; jobs", "")
	k.send("cat &\r") // which may not read from the terminal
	k.expect("$ ")
	k.send("until jobs | grep -q Stopped; do :; done; echo stopped\r")
	k.expect("\r\nstopped\r\n")
	k.expect("$ ")
	k.send("exit\r")
	k.expect("There are stopped jobs")
	k.expect("$ ")
	k.send("history 2 | tail -n 1\r")
	k.expect("\r\n")
	k.expect("  history 2 | tail -n 1\r\n$ ")
	k.send("kill -9 %%; wait\r") // the kernel's hang-up ends it too, but not where that is ignored, as under nohup
	k.expect("$ ")
	k.send("exit 3\r")
	if code := k.end(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
}

// busy waits until a program has the terminal. It may not be that program yet, but what the terminal sends reaches it.
func (k *talk) busy() {
	k.t.Helper()
	for limit := time.After(time.Minute); ; {
		group, err := unix.IoctlGetInt(int(k.tty.Fd()), unix.TIOCGPGRP)
		if err != nil {
			k.t.Fatal(err)
		}
		if group != k.cmd.Process.Pid {
			return
		}
		select {
		case <-limit:
			k.t.Fatal("no program got the terminal")
		case <-time.After(time.Millisecond):
		}
	}
}

// whole matches all of an output.
func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?s)^(?:` + pattern + `)$`) }

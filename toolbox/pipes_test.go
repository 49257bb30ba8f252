// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the shell itself writes to a pipe that nobody reads ends that part of the program, as SIGPIPE ends the process
// that it is in dash: by the signal, without a word and without a trap on EXIT, unless the signal is ignored or has a
// trap there. Where dash is on the machine, it has to say the same.
func TestBrokenPipes(t *testing.T) {
	const loop = `while :; do echo x; done`
	for name, c := range map[string]struct{ script, want string }{
		"a loop":                  {loop + ` | head -n 1; echo end`, "x\nend\n"},
		"printf":                  {`while :; do printf '%s\n' x; done | head -n 1; echo end`, "x\nend\n"},
		"command echo":            {`while :; do command echo x; done | head -n 1; echo end`, "x\nend\n"},
		"pwd":                     {`cd /; while :; do pwd; done | head -n 1; echo end`, "/\nend\n"},
		"type":                    {`while :; do type cd; done | head -n 1; echo end`, "cd is a shell builtin\nend\n"},
		"umask":                   {`umask 022; while :; do umask; done | head -n 1; echo end`, "0022\nend\n"},
		"trap":                    {`{ trap : TERM; while :; do trap; done; } | head -n 1; echo end`, "trap -- ':' TERM\nend\n"},
		"jobs":                    {`sleep 60 & { while :; do jobs; echo; done; } | head -n 1 >f; kill $!; echo end`, "end\n"},
		"a function":              {`f() { ` + loop + `; }; { f; echo never >&2; } | head -n 1; echo end`, "x\nend\n"},
		"a subshell":              {`{ (` + loop + `); echo $? >&2; } | head -n 1; echo end`, "x\n141\nend\n"},
		"a substitution":          {`x=$(` + loop + ` | head -n 1; echo in); echo $x`, "x in\n"},
		"from a substitution":     {`{ x=$(while :; do echo x >&3; done); echo "<$x $?>" >&2; } 3>&1 | head -n 1; echo end`, "x\n< 141>\nend\n"},
		"the middle":              {`yes | while read x; do echo $x; done | head -n 1; echo end`, "y\nend\n"},
		"one after another":       {loop + ` | while read a; do echo $a; done | while read a; do echo $a; break; done; echo end`, "x\nend\n"},
		"redirected":              {`{ while :; do echo x >&3; done 3>&1 >f; echo never >&2; } | head -n 1; echo end`, "x\nend\n"},
		"the shell":               {`{ sh -c 'while :; do echo x; done; echo never >&2'; echo $? >&2; } | head -n 1`, "x\n141\n"},
		"another descriptor":      {`{ sh -c 'exec 3>&1 >&2; while :; do echo x >&3; done; echo never'; echo $? >&2; } | head -n 1`, "x\n141\n"},
		"a subshell of the shell": {`{ sh -c '(while :; do echo x; done); echo $?' 2>&1 >&3; } 3>&1 | head -n 1; { sh -c '(while :; do echo x; done); echo $? >&2'; } | head -n 1`, "x\nx\n141\n"},
		"a trap on EXIT":          {`{ (trap 'echo bye >&2' EXIT; set -e; ` + loop + `); echo $? >&2; } | head -n 1; echo end`, "x\n141\nend\n"},
		"that of the shell":       {`{ sh -c 'trap "echo bye >&2" EXIT; ` + loop + `'; echo $? >&2; } | head -n 1`, "x\n141\n"},
		"ignored":                 {`trap '' PIPE; { { while echo x; do :; done; } 2>f; echo left $? >&2; wc -l <f >&2; } | head -n 1; echo end`, "x\nleft 0\n1\nend\n"},
		"ignored, and pwd":        {`trap '' PIPE; cd /; { { while pwd; do :; done; } 2>/dev/null; echo left >&2; } | head -n 1; echo end`, "/\nleft\nend\n"},
		"a trap":                  {`{ trap 'echo T >&3' PIPE; while echo x; do :; done; echo left >&3; } 3>&2 2>/dev/null | head -n 1; echo end`, "x\nT\nleft\nend\n"},
		"the shell's trap":        {`trap 'echo T >&2' PIPE; { while echo x; do :; done; echo never >&2; } | head -n 1; echo end`, "x\nend\n"},
		"and the shell's program": {`{ sh -c 'trap "echo T >&3" PIPE; (while echo x; do :; done); echo $? >&3; while echo x 2>/dev/null; do :; done; echo left >&3'; echo $? >&2; } 3>&2 | head -n 1`, "x\n141\nT\nleft\n0\n"},
		"kill of the shell":       {`trap 'echo T' PIPE; kill -PIPE $$; echo end`, "T\nend\n"},
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
			theirs := exec.CommandContext(ctx, dash, "-c", strings.ReplaceAll(c.script, "sh -c", dash+" -c"))
			theirs.Dir, theirs.WaitDelay = t.TempDir(), time.Minute
			if got := printedBy(t, theirs); got != c.want {
				t.Errorf("dash: %s\n got %q\nwant %q", c.script, got, c.want)
			}
		})
	}
}

// printedBy is what a program prints to its end, where it is to succeed or not.
func printedBy(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v", err)
	}
	return out.String()
}

// The trap of SIGPIPE may write there, too: it is not run for what it writes itself.
func TestTrapOfBrokenPipeBreaksOne(t *testing.T) {
	script := `{ trap 'echo T; exit 3' PIPE; while echo x; do :; done; } 2>/dev/null | head -n 1; echo $?`
	if got := printedBy(t, command(t, t.TempDir(), "sh", "-c", script)); got != "x\n0\n" {
		t.Errorf("%s: %q", script, got)
	}
}

// A shell whose own output nobody reads dies of the signal, whichever descriptor that is.
func TestShellDiesOfSIGPIPE(t *testing.T) {
	for _, script := range []string{
		`while :; do echo x; done`,
		`exec 3>&1 >/dev/null; while :; do echo x >&3; done`,
	} {
		cmd := command(t, t.TempDir(), "sh", "-c", script)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.Close()
		_ = cmd.Wait() // says what the state says
		if status, ok := cmd.ProcessState.Sys().(interface{ Signal() unix.Signal }); !ok || status.Signal() != unix.SIGPIPE {
			t.Errorf("%s: %v, want its end by SIGPIPE", script, cmd.ProcessState)
		}
	}
}

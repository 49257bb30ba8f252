// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// DC-01: Ctrl-C ends the whole line, whatever it does, and never the shell: the prompt comes back, $? is 130 and nothing of the line is run any more.
// That is what dash and bash do.
func TestCtrlC(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	k := converse(t, dir, "sh")
	k.expect("$ ")
	const inShell, inProgram = false, true
	for _, c := range []struct {
		name, line string
		program    bool // a program has the terminal while it runs
	}{
		{"a program", `sleep 60`, inProgram},
		{"a list", `sleep 60; echo never`, inProgram},
		{"or", `sleep 60 || echo never`, inProgram},
		{"not", `! sleep 60 && echo never`, inProgram},
		{"a pipeline", `sleep 60 | cat; echo never`, inProgram},
		{"a pipeline's reader", `cat | cat | cat; echo never`, inProgram},
		{"a pipeline with a loop", `yes | while read x; do sleep 60; done; echo never`, inProgram},
		{"a pipeline of the shell's own", `while :; do echo x; done | while read x; do :; done; echo never`, inShell},
		{"while", `while true; do sleep 60; done; echo never`, inProgram},
		{"for", `for i in 1 2 3; do sleep 60; done; echo never`, inProgram},
		{"until", `until sleep 60; do echo never; done`, inProgram},
		{"if", `if sleep 60; then echo never; else echo never; fi`, inProgram},
		{"an empty loop", `while :; do :; done; echo never`, inShell},
		{"a loop of descriptors", `while :; do { :; } 3<&0 >/dev/null; done; echo never`, inShell},
		{"a function", `f() { sleep 60; echo never; }; f; echo never`, inProgram},
		{"a subshell", `(sleep 60; echo never); echo never`, inProgram},
		{"a substitution", `x=$(sleep 60; echo never); echo never $x`, inProgram},
		{"an argument", `echo never $(sleep 60)`, inProgram},
		{"eval", `eval 'sleep 60; echo never'; echo never`, inProgram},
		{"a script in the shell", `echo 'sleep 60; echo never' >s; . ./s; echo never`, inProgram},
		{"a script", `echo 'sleep 60; echo never' >s; sh s; echo never`, inProgram},
		{"a command of a shell's", `sh -c 'while :; do sleep 60; done; echo never'; echo never`, inProgram},
		{"an empty loop of a shell's", `sh -c 'while :; do :; done; echo never'; echo never`, inProgram},
		{"a redirection", `{ sleep 60; echo never >&2; } >f; echo never`, inProgram},
		{"read", `read x; echo never`, inShell},
		{"read with a prompt", `read -p go x; echo never`, inShell},
		{"read with a time", `read -t 60 x; echo never`, inShell},
		{"read of bytes", `read -n 3 x; echo never`, inShell},
		{"read unseen", `read -s x; echo never`, inShell},
		{"a loop of reads", `while read x; do echo never; done; echo never`, inShell},
		{"read in a substitution", `x=$(read y; echo never); echo never`, inShell},
		{"read of a pipe", `sleep 60 | { read x; echo never; }; echo never`, inProgram},
		{"wait", `sleep 60 & echo begun; wait; echo never`, inShell},
		{"a pipe nobody writes to", `cat <pipe; echo never`, inShell},
		{"a pipe nobody reads", `echo never >pipe; echo never`, inShell},
		{"a descriptor of a pipe", `exec 3<pipe; echo never`, inShell},
		{"arithmetic", `for ((i=0;;i++)); do :; done; echo never`, inShell},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(c.line, "begun") {
				c.line = "echo begun; " + c.line
			}
			k.send(c.line + "\r")
			k.expect("\r\nbegun\r\n")
			if c.program {
				k.busy()
			}
			k.send("\x03")
			text := k.expect("$ ")
			k.send("echo =$?\r")
			text += k.expect("\r\n=130\r\n$ ")
			if strings.Contains(text, "\nnever") || strings.Contains(text, "open pipe") {
				t.Errorf("the line went on: %q", text)
			}
			k.send("kill %% 2>/dev/null; wait; clear\r")
			k.expect("\x1b[2J")
			k.expect("$ ")
		})
	}
	k.send("exit 3\r")
	if code := k.end(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
}

// DC-01: Ctrl-Z stops the program that runs and ends the line it is part of, as other shells do with a loop; read is not stopped by it.
func TestCtrlZBeside(t *testing.T) {
	k := converse(t, t.TempDir(), "sh")
	k.expect("$ ")
	for _, line := range []string{
		`for i in 1 2 3; do cat; done; echo never`,
		`f() { cat; echo never; }; f; echo never`,
		`(cat; echo never) || echo never`,
	} {
		k.send(line + "\r")
		k.busy()
		k.send("\x1a")
		k.expect("Stopped")
		k.expect("$ ")
		k.send("echo =$?\r")
		if text := k.expect("\r\n=148\r\n"); strings.Contains(text, "\nnever") {
			t.Errorf("%s went on: %q", line, text)
		}
		k.expect("$ ")
		k.send("kill -9 %%; wait; clear\r")
		k.expect("\x1b[2J")
		k.expect("$ ")
	}
	k.send("echo begun; read x; echo got $x\r")
	k.expect("\r\nbegun\r\n")
	k.send("\x1aline\r")
	k.expect("got line\r\n$ ")
	k.send(`read a b; echo "$a,$b"` + "\r one\\\\x two\\\r three\r")
	k.expect(`one\x,two three`)
	k.expect("$ ")
	k.send("exit 4\r")
	if code := k.end(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
}

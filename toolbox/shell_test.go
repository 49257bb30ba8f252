// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// talk is a command on a terminal.
type talk struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	seen strings.Builder
	got  chan string
}

func converse(t *testing.T, dir string, args ...string) *talk {
	t.Helper()
	cmd := lasting(context.Background(), dir, args...)
	cmd.Env = append(cmd.Env, "TERM=xterm", "GOTRACEBACK=all")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{t: t, cmd: cmd, tty: tty, got: make(chan string)}
	go func() {
		defer close(k.got)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			if n > 0 {
				k.got <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		killSession(cmd.Process.Pid) // all who have its terminal open, whose end is the reader's
		for k.got != nil {
			if _, ok := <-k.got; !ok {
				k.got = nil
			}
		}
		_ = cmd.Wait()
		tty.Close()
	})
	return k
}

// explain says what the processes of a session that does not end are doing, and lets its leader say where it is.
func (k *talk) explain() string {
	var b strings.Builder
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may have ended
		if f := strings.Fields(string(text)); len(f) > 8 && f[5] == strconv.Itoa(k.cmd.Process.Pid) {
			line, _ := os.ReadFile(filepath.Dir(path) + "/cmdline")
			signals, _ := os.ReadFile(filepath.Dir(path) + "/status")
			_, pending, _ := strings.Cut(string(signals), "SigPnd:")
			pending, _, _ = strings.Cut(pending, "Seccomp")
			fmt.Fprintf(&b, "%s: %q, state %s, parent %s, group %s, the terminal's %s; %q\n", f[0], line, f[2], f[3], f[4], f[7], pending)
		}
	}
	_ = k.cmd.Process.Signal(syscall.SIGABRT)
	for limit := time.After(5 * time.Second); ; {
		select {
		case part, ok := <-k.got:
			if b.WriteString(part); !ok {
				k.got = nil
				return b.String()
			}
		case <-limit:
			return b.String()
		}
	}
}

// killSession kills a session's leader and all that is left in it.
func killSession(leader int) {
	for again := true; again; { // what is started meanwhile too
		again = false
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			text, _ := os.ReadFile(path) // it may have ended
			_, rest, _ := strings.Cut(string(text), ") ")
			var state string
			var parent, group, session, pid int
			if n, _ := fmt.Sscan(rest, &state, &parent, &group, &session); n < 4 || session != leader || state == "Z" || state == "X" {
				continue
			}
			if n, _ := fmt.Sscan(string(text), &pid); n == 1 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				again = true
			}
		}
	}
}

func (k *talk) send(text string) {
	k.t.Helper()
	if _, err := k.tty.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
}

// expect waits until a text is shown, and forgets what was before its end.
func (k *talk) expect(want string) string {
	k.t.Helper()
	limit := time.After(time.Minute)
	for {
		text := k.seen.String()
		if at := strings.Index(text, want); at >= 0 {
			k.seen.Reset()
			k.seen.WriteString(text[at+len(want):])
			return text[:at]
		}
		select {
		case part, ok := <-k.got:
			if !ok {
				k.t.Fatalf("the terminal was closed; waited for %q, saw %q", want, text)
			}
			k.seen.WriteString(part)
		case <-limit:
			k.t.Fatalf("never %q; saw %q", want, text)
		}
	}
}

func (k *talk) end() int {
	k.t.Helper()
	for limit := time.After(time.Minute); k.got != nil; {
		select {
		case part, ok := <-k.got:
			if k.seen.WriteString(part); !ok {
				k.got = nil
			}
		case <-limit:
			k.t.Fatalf("it does not end; saw %q\n%s", k.seen.String(), k.explain())
		}
	}
	err := k.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		k.t.Fatal(err)
	}
	return k.cmd.ProcessState.ExitCode()
}

// The shell on a terminal: prompt, Ctrl-C in every situation, Ctrl-D, what is typed ahead, history, completion.
func TestShellOnATerminal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a file name"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := converse(t, dir, "sh")
	k.expect("$ ")

	t.Run("Ctrl-C drops the line", func(t *testing.T) {
		k.send("echo no\x03")
		k.expect("^C\r\n$ ")
		k.send("echo $?\r")
		k.expect("\r\n130\r\n$ ")
	})
	t.Run("Ctrl-C ends a program and not the shell", func(t *testing.T) {
		k.send("echo begun; sleep 60; echo never\r")
		k.expect("\r\nbegun\r\n")
		k.send("\x03")
		k.expect("$ ")
		k.send("echo =$?\r")
		if text := k.expect("\r\n=130\r\n$ "); strings.Contains(text, "\nnever") {
			t.Errorf("the line went on: %q", text)
		}
	})
	t.Run("Ctrl-C ends a loop of the shell's own", func(t *testing.T) {
		k.send("echo begun; while true; do :; done\r")
		k.expect("\r\nbegun\r\n")
		k.send("\x03")
		k.expect("$ ")
	})
	t.Run("typed ahead", func(t *testing.T) {
		k.send("read x\rtaken\recho got $x\r")
		k.expect("\r\ngot taken\r\n$ ")
	})
	t.Run("editing", func(t *testing.T) {
		k.send("echo ac\x1b[Db\x01\x1b[C\x1b[C\x05!\r")
		k.expect("\r\nabc!\r\n$ ")
		k.send("echo one two\x17three\x15echo all\r")
		k.expect("\r\nall\r\n$ ")
		k.send("echo déjà\x7f\x7fà\r")
		k.expect("\r\ndéà\r\n$ ")
	})
	t.Run("history", func(t *testing.T) {
		k.send("echo first\r")
		k.expect("\r\nfirst\r\n$ ")
		k.send("echo second\r")
		k.expect("\r\nsecond\r\n$ ")
		k.send("\x1b[A\x1b[A\r")
		k.expect("\r\nfirst\r\n$ ")
		k.send("\x12sec\r")
		k.expect("\r\nsecond\r\n$ ")
	})
	t.Run("completion", func(t *testing.T) {
		k.send("cd fol\t\r")
		k.expect("cd folder/")
		k.expect("$ ")
		k.send("cd ..; base\te /a/b\r") // basename, not base64
		k.send("\x03")
		k.expect("$ ")
		k.send("sha256\t /dev/null | cut -c1-4\r")
		k.expect("\r\ne3b0\r\n$ ")
	})
	t.Run("lines that go on", func(t *testing.T) {
		k.send("for i in 1 2\rdo echo $i-\rdone\r")
		k.expect("> ")
		k.expect("\r\n1-\r\n2-\r\n$ ")
	})
	t.Run("syntax", func(t *testing.T) {
		k.send(")\r")
		k.expect("$ ")
		k.send("echo $?\r")
		k.expect("\r\n2\r\n$ ")
	})
	t.Run("long lines", func(t *testing.T) {
		k.send("echo " + strings.Repeat("x", 200) + " | wc -c\r")
		k.expect("\r\n201\r\n$ ")
	})
	k.send("(exit 9)\r")
	k.expect("$ ")
	k.send("\x04")
	k.expect("exit")
	if code := k.end(); code != 9 {
		t.Errorf("after Ctrl-D: exit code %d, want that of the last command, 9", code)
	}
}

// vi: what was typed is in the file when one says so, and not otherwise.
func TestVi(t *testing.T) {
	for _, c := range []struct{ name, text, keys, want string }{
		{"insert and append", "b\n", "ia\x1bAc\x1b:wq\r", "abc\n"},
		{"open lines", "m\n", "oend\x1bkOtop\x1b:x\r", "top\nm\nend\n"},
		{"delete and put", "1\n2\n3\n", "ddjp:wq\r", "2\n3\n1\n"},
		{"words", "one two three\n", "wdwx:wq\r", "one hree\n"},
		{"change a word", "one two\n", "cwONE\x1bw.:wq\r", "ONE ONE\n"},
		{"counts and undo", "abcdef\n", "3xu2x:wq\r", "cdef\n"},
		{"undo and again", "abc\n", "xxuu\x12:wq\r", "bc\n"},
		{"search", "a\nb needle\nc\n", "/needle\rD:wq\r", "a\nb \nc\n"},
		{"search on", "x\ny\nx\n", "/x\rxn:wq\r", "x\ny\n\n"},
		{"substitute", "aa\naa\n", ":%s/a/<&>/g\r:wq\r", "<a><a>\n<a><a>\n"},
		{"range", "1\n2\n3\n4\n", ":2,3d\r:wq\r", "1\n4\n"},
		{"yank", "a\nb\n", "yyjp:wq\r", "a\nb\na\n"},
		{"join and case", "ab\ncd\n", "J0~:wq\r", "Ab cd\n"},
		{"goto", "1\n2\n3\n", "Gx2Gx:wq\r", "1\n\n\n"},
		{"bracket", "f(a(b)c)d\n", "f(d%:wq\r", "fd\n"},
		{"till", "key=value\n", "dt=:wq\r", "=value\n"},
		{"not written", "keep\n", "dd:q!\r", "keep\n"},
		{"q refuses", "keep\n", "x:q\r:q!\r", "keep\n"},
		{"bytes that are no text", "\xff\xfe\n", "Aok\x1b:wq\r", "\xff\xfeok\n"},
		{"no line end", "x", "Ay\x1b:wq\r", "xy"},
		{"line breaks", "ab\n", "li\r\x1b:wq\r", "a\nb\n"},
		{"backspace", "", "iabc\x7f\x7fd\r\x7fe\x1b:wq\r", "ade\n"},
		{"ZZ", "a\n", "xZZ", "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "f")
			if err := os.WriteFile(file, []byte(c.text), 0o640); err != nil {
				t.Fatal(err)
			}
			k := converse(t, dir, "vi", "f")
			k.expect("f\"")
			k.send(c.keys)
			if code := k.end(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != c.want {
				t.Errorf("%q (%v), want %q", got, err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// less shows a page, searches, and ends.
func TestLess(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 100 {
		text.WriteString("line " + string(rune('a'+i%26)) + "\n")
	}
	text.WriteString("needle\nlast\n")
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	k := converse(t, dir, "less", "f")
	k.expect("f 23/102")
	k.send(" ")
	k.expect("f 46/102")
	k.send("/needle\r")
	k.expect("needle")
	k.expect("(END)")
	k.send("g")
	k.expect("f 23/102")
	k.send("q")
	if code := k.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestHostileNames (RS-13): a file that is called what a terminal would obey is shown with question marks, by ls, by find, in error messages
// and in the prompt; in a pipe its name is what it is.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	name := "x\x1b]0;PWNED\ay"
	if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, _, _ := do(t, dir, "", "ls"); out != name+"\n" {
		t.Errorf("in a pipe: %q", out)
	}
	k := converse(t, dir, "sh")
	k.expect("$ ")
	k.send("ls\nfind .\ncat x*\ncd x*\nPS1='in \\W> '\n")
	seen := k.expect("in x?]0;PWNED?y> ")
	if strings.Contains(seen, "\x1b]0") || strings.Count(seen, "x?]0;PWNED?y") < 3 {
		t.Errorf("seen: %q", seen)
	}
}

// Ctrl-C ends a command with a descriptor of its own: the shell has its own back. A shell that leaves hangs up what is stopped.
func TestCtrlCAndHangUp(t *testing.T) {
	dir := t.TempDir()
	k := converse(t, dir, "sh")
	k.expect("$ ")
	k.send("echo mine >f; exec 3<f\r")
	k.expect("$ ")
	k.send("while sleep 60; do :; done 3</dev/null\r")
	k.expect("\r\n")
	k.busy()
	k.send("\x03")
	k.expect("$ ")
	k.send("cat <&3\r")
	k.expect("\r\nmine\r\n")
	k.expect("$ ")

	k.send("sh -c 'trap \"echo hup >told; exit\" HUP; echo up; while :; do sleep 0.01; done'\r")
	k.expect("\r\nup\r\n")
	k.send("\x1a")
	k.expect("Stopped")
	k.expect("$ ")
	k.send("exit\r")
	k.expect("There are stopped jobs")
	k.send("exit 4\r")
	if code := k.end(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if text, _ := os.ReadFile(filepath.Join(dir, "told")); string(text) == "hup\n" {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("the stopped job was not hung up")
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/internal/check/guides"
)

// someone is who types the guides: nobody, in the machine's terms.
const someone = 65534

// desk is where somebody sits who reads the guides: a folder with the program, a kubectl, a sudo, and the engines that this machine has.
//
// What a page says of its reader's machine stands for what is here: the usual data folder for that of the desk's server. A `wherry server`
// that is typed runs on a folder of its own, beside the desk's, and an agent on a third; both are given ports that are free.
type desk struct {
	srv     *Server
	dir     string // where somebody types
	root    string // the folder around it, with what is not for looking at
	env     []string
	has     map[string]bool // what of "? NAME" is on this machine
	exports []string        // what was exported in the terminal
	words   []string        // of the page, each followed by what it stands for
	on      []*lasting
}

// lasting is a command that goes on.
type lasting struct {
	*exec.Cmd
	line  string
	out   *Stream
	ended chan error
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{has: map[string]bool{}, srv: own(t, ServerOptions{
		Args: []string{"--write-kubeconfig-group", strconv.Itoa(someone), "--enable-system-log-query",
			throughFullDisks}})}
	var err error
	if d.root, err = os.MkdirTemp("", serverPrefix+"guides"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(d.root); err != nil {
			t.Error(err)
		}
	})
	d.dir = filepath.Join(d.root, "home")
	for _, folder := range []string{d.dir, filepath.Join(d.root, "real"), filepath.Join(d.root, "shims"), filepath.Join(d.dir, "bin")} {
		check(t, os.Mkdir(folder, 0o755))
	}
	check(t, os.Chmod(d.root, 0o755))
	check(t, os.Chmod(filepath.Dir(d.srv.DataDir), 0o755)) // as /var/lib is
	check(t, os.Chown(d.dir, someone, someone))
	check(t, os.CopyFS(d.dir, os.DirFS("testdata/guides")))
	check(t, os.CopyFS(filepath.Join(d.dir, "examples"), os.DirFS("../../examples")))
	d.env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBE") || strings.HasPrefix(e, "WHERRY") })
	d.env = append(d.env, "HOME="+d.dir, "WHERRY_DATA_DIR="+d.srv.DataDir, "PATH="+filepath.Join(d.root, "shims")+":"+os.Getenv("PATH"),
		"DATA="+d.srv.DataDir, "NODE="+d.srv.NodeName, "NODE_IP="+d.srv.NodeIP,
		"SECOND="+d.another(t), "AGENT="+d.another(t), "AGENT_PORT="+strconv.Itoa(FreePort(t)))
	d.programs(t)
	d.images(t)
	d.engines(t)
	d.registry(t)
	return d
}

// another is a data folder for a server or an agent that is typed.
func (d *desk) another(t *testing.T) string {
	t.Helper()
	s, err := UnstartedServer(d.srv.World, ServerOptions{})
	check(t, err)
	t.Cleanup(func() { check(t, s.Purge(context.Background())) })
	return s.DataDir
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// programs makes those that are typed: what they read and write is the person's, unless they are typed after sudo.
func (d *desk) programs(t *testing.T) {
	t.Helper()
	real, shims := filepath.Join(d.root, "real"), filepath.Join(d.root, "shims")
	check(t, copyProgram(d.srv.World.Wherry, filepath.Join(real, "wherry")))
	check(t, copyProgram(d.srv.World.Kubectls[0].Path, filepath.Join(real, "kubectl")))
	check(t, os.Symlink(filepath.Join(shims, "wherry"), filepath.Join(d.dir, "bin/wherry")))
	person := func(program string) string {
		return `[ "$AS_ROOT" ] && exec ` + program + ` "$@"; exec setpriv --reuid 65534 --regid 65534 --clear-groups ` + program + ` "$@"`
	}
	programs := map[string]string{
		"wherry": `case "$1" in
server) export WHERRY_DATA_DIR="$SECOND"; set -- "$@" --secure-port 0 --kubelet-port 0 ;;
agent) export WHERRY_DATA_DIR="$AGENT"; set -- "$@" --kubelet-port "$AGENT_PORT" ;;
esac
case "$1" in server | agent) echo $$ >"${WHERRY_DATA_DIR%/d}/` + serverFile + `" ;; esac
` + person(filepath.Join(real, "wherry")),
		"kubectl":      person(filepath.Join(real, "kubectl")),
		"sudo":         `AS_ROOT=1 HOME=` + d.root + ` SUDO_UID=65534 SUDO_GID=65534 exec "$@"`,
		"jq":           `exec cat`, // what a filter makes of it is not the guide's matter
		"my-collector": `exec cat`,
	}
	for _, name := range []string{"tar", "sha256sum", "openssl"} {
		path, err := exec.LookPath(name)
		check(t, err)
		programs[name] = person(path)
	}
	for name, script := range programs {
		d.program(t, name, script)
	}
}

// program makes one.
func (d *desk) program(t *testing.T, name, script string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(d.root, "shims", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// sits begins a page: what words stand for, and what goes on, ends with it.
func (d *desk) sits(t *testing.T) {
	d.words = []string{"/var/lib/wherry", "$DATA"}
	t.Cleanup(func() {
		for len(d.on) > 0 {
			d.interrupt(t, syscall.SIGINT, 0)
		}
	})
}

// does does what a step says.
func (d *desk) does(t *testing.T, s guideStep, command string) {
	t.Helper()
	if s.kind == guides.NotTyped {
		return
	}
	if s.needs != "" && !d.has[s.needs] {
		d.leaves(t, s, command)
		return
	}
	command = strings.NewReplacer(d.words...).Replace(command)
	switch s.kind {
	case guides.Stands:
		old, now, _ := strings.Cut(s.run, " ")
		d.words = append([]string{old, now}, d.words...)
	case guides.Lasts, guides.ScriptLasts:
		d.begins(t, s, command)
	case guides.Interrupts:
		signal := syscall.SIGINT
		if s.run == "TERM" { // a shell's background ignores the other
			signal = syscall.SIGTERM
		}
		code, _ := strconv.Atoi(s.run) // the other words are none
		out := d.interrupt(t, signal, code)
		d.printed(t, s, "it", out)
	case guides.AtTerminal:
		d.answers(t, s, command)
	default:
		d.types(t, s, command)
	}
}

// leaves leaves a step out, which is a test that was skipped: what is not tried is to be seen where all else passes.
func (d *desk) leaves(t *testing.T, s guideStep, command string) {
	why := fmt.Sprintf("guides.txt, line %d: not typed, for %s is not here: %s", s.line, s.needs, guides.FirstLine(command))
	fmt.Fprintln(os.Stderr, "e2e: skipped:", why)
	t.Run("line "+strconv.Itoa(s.line), func(t *testing.T) { t.Skip(why) })
}

// command is one at the desk.
func (d *desk) command(ctx context.Context, s guideStep, command string) *exec.Cmd {
	script := strings.Join(append(slices.Clone(d.exports), command), "\n")
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = d.dir, slices.Clone(d.env), 5*time.Second
	if s.kind == guides.OfScript || s.kind == guides.ScriptLasts {
		cmd.Env = append(cmd.Env, "AS_ROOT=1", "HOME="+d.root)
	}
	return cmd
}

// types runs a command and looks at what it says.
func (d *desk) types(t *testing.T, s guideStep, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*Timeout) // an application in three tiers takes its time
	defer cancel()
	out, err := d.command(ctx, s, command).CombinedOutput()
	if (err != nil) != s.fails {
		t.Errorf("guides.txt, line %d: %s\n%v\n%s", s.line, command, err, out)
		return
	}
	if strings.HasPrefix(command, "export ") {
		d.exports = append(d.exports, command)
	}
	d.printed(t, s, command, string(out))
}

func (d *desk) printed(t *testing.T, s guideStep, command, out string) {
	t.Helper()
	for _, want := range s.wants {
		if !s.prints(t, out, want) {
			t.Errorf("guides.txt, line %d: %s\nprinted\n%swhich is not %s", s.line, command, out, want)
		}
	}
}

// begins starts a command that goes on, and returns when it has printed what it must.
func (d *desk) begins(t *testing.T, s guideStep, command string) {
	t.Helper()
	l := &lasting{d.command(context.Background(), s, command), command, newStream(t, command), make(chan error, 1)}
	l.Stdout, l.Stderr, l.WaitDelay = l.out, l.out, 0
	l.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for all of it, and not for the tests
	check(t, l.Start())
	d.on = append(d.on, l)
	go func() {
		l.ended <- l.Wait()
		l.out.close()
	}()
	for _, want := range s.wants {
		l.out.AwaitFunc(want, func(all string) bool { return s.prints(t, all, want) })
	}
}

// interrupt ends what began last, as Ctrl-C does, and gives what it printed. It ends well, or by the interrupt, or with the code.
func (d *desk) interrupt(t *testing.T, signal syscall.Signal, may int) string {
	t.Helper()
	l := d.on[len(d.on)-1]
	d.on = d.on[:len(d.on)-1]
	if err := syscall.Kill(-l.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
	var err error
	select {
	case err = <-l.ended:
	case <-time.After(Timeout):
		t.Errorf("%s does not end on Ctrl-C; it printed\n%s", l.line, l.out.Text())
		_ = syscall.Kill(-l.Process.Pid, syscall.SIGKILL) // it may have ended now
		err = <-l.ended
	}
	how, code := l.ProcessState.Sys().(syscall.WaitStatus), l.ProcessState.ExitCode()
	if err != nil && code != may && code != 128+int(signal) && !(how.Signaled() && how.Signal() == signal) {
		t.Errorf("%s\nended after Ctrl-C with %v; it printed\n%s", l.line, err, l.out.Text())
	}
	return l.out.Text()
}

// answers runs a command at a terminal, where somebody reads what it shows, and types what lines with "<" say.
func (d *desk) answers(t *testing.T, s guideStep, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	c := onTerminal(t, &Cmd{Cmd: d.command(ctx, s, command), t: t, line: command, cancel: cancel}, pty.Winsize{Rows: 40, Cols: 120})
	for _, want := range s.wants {
		if answer, ok := strings.CutPrefix(want, "<"); ok {
			c.typed(strings.TrimSpace(answer) + "\r")
			continue
		}
		c.AwaitFunc(want, func(all string) bool { return s.prints(t, all, want) })
	}
	if code := c.code(); code != 0 {
		t.Errorf("guides.txt, line %d: %s\nended with %d; it showed\n%s", s.line, command, code, c.Text())
	}
}

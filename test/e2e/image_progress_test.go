// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/test/images"
)

// On a terminal wherry image pull, run, exec --image and debug --image show how far a pull is, and take it away when it is done (IX-02).
func TestPullProgress(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	reg := srv.Registry(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	for name, args := range map[string]func(ref string) []string{
		"pull": func(ref string) []string { return []string{"image", "pull", ref} },
		"run": func(ref string) []string {
			return []string{"run", "--rm", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, ref, "--", "exit", "0"}
		},
		"exec": func(ref string) []string {
			return []string{"exec", "-n", s.Namespace, "web", "-m", ref, "--", "/tool", "exit", "0"}
		},
		"debug": func(ref string) []string {
			return []string{"debug", "-n", s.Namespace, "web", "-m", ref, "--", "/tool", "exit", "0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := reg.Push(srv, images.ToolRef, name+":1")
			_, release := reg.Hold()
			cmd := exec.Command(srv.World.Wherry, args(ref)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG=", "WHERRY_DATA_DIR="+srv.DataDir)
			console := s.With(t).onTerminal(&Cmd{Cmd: cmd, t: t, line: "wherry " + name, cancel: func() { _ = cmd.Process.Kill() }}, pty.Winsize{Rows: 24, Cols: 120})
			console.Await("MiB/s, 0 of ")
			release()
			if code := console.code(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			text := console.Text()
			if last := text[strings.LastIndex(text, "MiB/s"):]; !strings.Contains(last, "\r\x1b[K") {
				t.Errorf("the line is left: %q", text)
			}
		})
	}
}

// Who has no socket to ask on, and no terminal, is told of a pull that takes its time in a line (IX-02).
func TestPullProgressElsewhere(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	reg := srv.Registry(t)
	s.Create(NewPod("web", Tool("sleep")))
	s.WaitReady("web")
	text, err := os.ReadFile(s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(elsewhere, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, main := range []bool{false, true} { // the short program begins, unless there may be a proxy on the way
		ref := reg.Push(srv, images.ToolRef, fmt.Sprint("elsewhere:", main))
		_, release := reg.Hold()
		cmd := exec.Command(srv.World.Wherry, "exec", "--kubeconfig", elsewhere, "-n", s.Namespace, "web", "-m", ref, "--", "/tool", "exit", "3")
		if cmd.Env = os.Environ(); main {
			cmd.Env = append(cmd.Env, "HTTP_PROXY=http://proxy.invalid")
		}
		p := (&Cmd{Cmd: cmd, t: t, line: "wherry exec", cancel: func() { _ = cmd.Process.Kill() }}).StartProcess()
		p.Err.Await("Pulling image \"" + ref + "\"\n")
		release()
		if code := p.Wait(); code != 3 || strings.Contains(p.Err.Text(), "\x1b") || p.Out.Text() != "exiting with 3\n" {
			t.Errorf("exit code %d, out %q, err %q", code, p.Out.Text(), p.Err.Text())
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/test/images"
)

// On a terminal wherry image pull and wherry run show how far a pull is, and take it away when it is done.
func TestPullProgress(t *testing.T) {
	t.Parallel()
	srv := own(t)
	s := srv.Space(t)
	reg := srv.Registry(t)
	for name, args := range map[string]func(ref string) []string{
		"pull": func(ref string) []string { return []string{"image", "pull", ref} },
		"run": func(ref string) []string {
			return []string{"run", "--rm", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, ref, "--", "exit", "0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ref := reg.Push(srv, images.ToolRef, name+":1")
			release := reg.Hold()
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

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/test/images"
)

// EC-16: a short command's output reaches kubectl run --attach, whole and once: of the kubectl that reads the log before it attaches and of
// those that do not, without standard input, with it, and on a terminal.
func TestKubectlRunAttach(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	for i := range 5 {
		for name, flags := range map[string][]string{"plain": {"--attach"}, "stdin": {"-i"}} {
			args := append([]string{"run", fmt.Sprintf("%s-%d", name, i), "--rm", "--quiet", "--restart=Never", "--image=" + images.BusyboxRef}, flags...)
			p := s.Start(append(args, "--", "sh", "-c", "echo hi; echo there; exit 3")...)
			if p.In != nil {
				_ = p.In.Close()
			}
			if code := p.Wait(); code != 3 {
				t.Errorf("%s %d: exit code %d: %s", name, i, code, p.Err.Text())
			}
			if out := p.Out.Text(); strings.Count(out, "hi\n") != 1 || strings.Count(out, "there\n") != 1 {
				t.Errorf("%s %d: it printed %q, %q", name, i, out, p.Err.Text())
			}
		}
		cmd := s.KubectlCommand("run", fmt.Sprintf("tty-%d", i), "--rm", "--quiet", "-it", "--restart=Never", "--image="+images.BusyboxRef, "--", "sh", "-c",
			"echo hi; sleep 0.2; echo there")
		c := s.onTerminal(cmd, pty.Winsize{Rows: 24, Cols: 80})
		c.code()
		if out := c.Text(); strings.Count(out, "hi\r\n") != 1 || strings.Count(out, "there\r\n") != 1 {
			t.Errorf("on a terminal, %d: it printed %q", i, out)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

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

// EC-16: attaching to a container that has ended, in a pod that goes on, shows its log once and ends well, with standard input and without.
func TestAttachToAnEndedContainer(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	script := "echo hi; echo there >&2; exit 3"
	s.Apply(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"half"},"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":0,
		"containers":[{"name":"short","image":%[1]q,"command":["sh","-c",%[2]q]},{"name":"long","image":%[1]q,"command":["sleep","1000"]}]}}`,
		images.BusyboxRef, script))
	s.Wait("half", "short has ended", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == "short" && c.State.Terminated != nil })
	})
	for _, flags := range [][]string{nil, {"-i"}} {
		p := s.Start(append([]string{"attach", "--quiet", "half", "-c", "short"}, flags...)...)
		if p.In != nil {
			_ = p.In.Close()
		}
		if code := p.Wait(); code != 0 || p.Out.Text() != "hi\n" || p.Err.Text() != "there\n" {
			t.Errorf("attach %v: code %d, %q, %q", flags, code, p.Out.Text(), p.Err.Text())
		}
	}
}

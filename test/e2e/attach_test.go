// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/wherryproject/wherry/test/images"
)

// debugger adds an ephemeral container that runs a script, and waits until it has been started.
func (s *Space) debugger(pod, name, script string, change ...func(*corev1.EphemeralContainer)) {
	s.T.Helper()
	c := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: name, Image: images.BusyboxRef, Command: []string{"sh", "-c", script},
	}}
	for _, f := range change {
		f(&c)
	}
	s.addDebug(pod, c)
	s.Wait(pod, name+" has been started", func(p *corev1.Pod) bool {
		for i := range p.Status.EphemeralContainerStatuses {
			if st := &p.Status.EphemeralContainerStatuses[i]; st.Name == name {
				return st.State.Running != nil || st.State.Terminated != nil
			}
		}
		return false
	})
}

// attached is what a client sees of a container until its end.
func (s *Space) attached(pod, container string, tty bool) (stdout, stderr string) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), Timeout)
	defer cancel()
	req := s.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.Namespace).Name(pod).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: container, Stdout: true, Stderr: !tty, TTY: tty}, scheme.ParameterCodec)
	e, err := remotecommand.NewWebSocketExecutor(s.Config, http.MethodGet, req.URL().String())
	if err != nil {
		s.T.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut, Tty: tty}); err != nil {
		s.T.Errorf("attach to %s/%s: %v; it had shown %q %q", pod, container, err, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

// EC-14, EC-16: whoever attaches to a debug container sees what it has printed, from the first byte, once, however late: while it
// runs, after its end, and also of a program that prints and ends at once.
func TestAttachFromTheFirstByte(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	s.Create(NewPod("web", Sh(Idle)))
	s.WaitReady("web")

	s.debugger("web", "quick", "printf 'one\\ntwo\\nthree'; printf 'and errors' >&2")
	for range 3 {
		if out, errOut := s.attached("web", "quick", false); out != "one\ntwo\nthree" || errOut != "and errors" {
			t.Errorf("EC-16: %q and %q", out, errOut)
		}
	}
	s.Kubectl("logs", "web", "-c", "quick").Has("one", "two", "three", "and errors")

	s.debugger("web", "shell", "echo welcome; exec sh", func(c *corev1.EphemeralContainer) { c.Stdin, c.TTY = true, true })
	transports(t, s, func(t *testing.T, s *Space, env []string) {
		size := pty.Winsize{Rows: 40, Cols: 99}
		one := s.console(env, size, "attach", "-it", "web", "-c", "shell")
		one.Await("welcome")
		one.typed("echo shared-$((40+2))\r")
		one.Await("shared-42")
		two := s.console(env, size, "attach", "-it", "web", "-c", "shell")
		two.Await("welcome")
		two.Await("shared-42")
		two.typed("echo EC-$((10+5))\r")
		one.Await("EC-15")
		if n := strings.Count(two.Text(), "welcome"); n != 1 {
			t.Errorf("EC-16: the beginning is shown %d times", n)
		}
		_ = one.cmd.Process.Kill() // its connection is lost
		two.typed("echo still-$((1+1))\r")
		two.Await("still-2")
		_ = two.cmd.Process.Kill()
	})
	last := s.console(nil, pty.Winsize{Rows: 40, Cols: 99}, "attach", "-it", "web", "-c", "shell")
	last.Await("still-2")
	last.typed("exit\r")
	last.code()
	if out, _ := s.attached("web", "shell", true); !strings.HasPrefix(out, "welcome\r\n") || !strings.Contains(out, "still-2\r\n") {
		t.Errorf("EC-16: after its end it shows %q", out)
	}
}

// EC-15, EC-16: a server that is killed amid the output of a debug container costs neither a client that attaches again nor the log
// a line.
func TestAttachAcrossKill(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t)
	s := srv.Space(t)
	s.Create(NewPod("web", Sh(Idle)))
	s.WaitReady("web")
	const lines = 6000
	count := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo number $i; [ $((i%%10)) -gt 0 ] || usleep 10000; done; read end", lines)
	s.debugger("web", "count", count, func(c *corev1.EphemeralContainer) { c.Stdin = true })
	for range 2 {
		client := s.Start("attach", "web", "-c", "count")
		client.Out.Await("number 500\n")
		srv.Kill()
		client.Wait()
		if err := srv.Start(s.Context()); err != nil {
			t.Fatal(err)
		}
		s.WaitReady("web")
	}
	client := s.Start("attach", "-i", "web", "-c", "count")
	client.Out.Await(fmt.Sprintf("number %d\n", lines))
	_, _ = io.WriteString(client.In, "end\n")
	if code := client.Wait(); code != 0 {
		t.Errorf("kubectl attach ended with %d", code)
	}
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "number %d\n", i+1)
	}
	if got := client.Out.Text(); got != want.String() {
		t.Errorf("EC-16: the client does not see every line once: %d bytes, want %d", len(got), want.Len())
	}
	s.Kubectl("logs", "web", "-c", "count").Is(strings.TrimSpace(want.String()))
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/test/images"
)

// runImage runs wherry run with docker's flags to its end.
func (s *Space) runImage(args ...string) Result {
	s.T.Helper()
	return runWherry(s.T, nil, s.runArgs(args...).Args[1:]...)
}

// wherry run IMAGE: output, exit code, environment, files and user as docker's flags say, and nothing else is said.
func TestRunImage(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	r := s.runImage("--rm", images.BusyboxRef, "--", "sh", "-c", "echo out; echo err >&2; exit 3").exits(3)
	if r.Out != "out\n" || !strings.Contains(r.Err, "err\n") || strings.Contains(r.Err, "created") {
		t.Errorf("standard output %q, standard error %q", r.Out, r.Err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "vars"), []byte("A=1\nB=two words\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	r = s.runImage("--rm", "-q", "--env-file", filepath.Join(folder, "vars"), "-e", "A=$(B) $$", "-u", "1000:20", "-w", "/in", "-v", folder+":/in:ro", "-v", "/scratch",
		images.BusyboxRef, "--", "sh", "-c", `echo "$A,$B"; id -u; id -g; pwd; head -1 vars; touch vars 2>/dev/null || echo fixed; echo x > /scratch/y && echo free; test $$ -gt 0 && echo $(echo sub)`).exits(0)
	if want := "$(B) $$,two words\n1000\n20\n/in\nA=1\nfixed\n"; !strings.HasPrefix(r.Out, want) || !strings.HasSuffix(r.Out, "sub\n") {
		t.Errorf("it printed %q, want %q and more", r.Out, want)
	}
	s.noPods()

	name := strings.TrimSpace(s.runImage("-d", "--name", "kept", images.BusyboxRef, "--", "sleep", "3600").exits(0).Out)
	if name != "pod/kept" {
		t.Errorf("-d printed %q", name)
	}
	s.Kubectl("exec", "kept", "--", "true")
	s.runImage("--name", "kept", images.BusyboxRef).exits(125).Says("already exists", "another --name")
	s.Delete("kept")
}

// wherry run -i hands standard input on; -it gives a shell on a terminal, whose end is the run's.
func TestRunImageInteractive(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	p := s.runProcess(s.runArgs("--rm", "-i", images.BusyboxRef, "--", "sh", "-c", "cat; echo done >&2; exit 4"))
	fmt.Fprint(p.In, "a\x00b\nlast")
	p.In.Close()
	if code := p.Wait(); code != 4 || p.Out.Text() != "a\x00b\nlast" || !strings.Contains(p.Err.Text(), "done\n") {
		t.Errorf("exit code %d, output %q, %q", code, p.Out.Text(), p.Err.Text())
	}
	s.noPods()
	t.Run("terminal", func(t *testing.T) {
		s := s.With(t)
		cmd := s.runArgs("--rm", "-it", images.BusyboxRef, "--", "sh", "-c",
			"until stty size | grep '33 77'; do sleep 0.1; done; while read line; do echo got $line; test $line = end && exit 5; done")
		c := s.onTerminal(&Cmd{Cmd: cmd, t: t, line: "wherry run -it", cancel: func() { _ = cmd.Process.Kill() }}, pty.Winsize{Rows: 33, Cols: 77})
		c.Await("33 77")
		c.typed("word\n")
		c.Await("got word")
		c.typed("end\n")
		if code := c.code(); code != 5 {
			t.Errorf("exit code %d, want 5\n%s", code, c.Text())
		}
		if strings.Contains(c.Text(), "created") {
			t.Errorf("it says more than the program does:\n%s", c.Text())
		}
		s.noPods()
	})
	t.Run("hangup", func(t *testing.T) {
		s := s.With(t)
		cmd := s.runArgs("--rm", "-it", images.BusyboxRef, "--", "sh", "-c", "trap 'exit 0' TERM; while :; do echo here; sleep 0.2; done")
		c := s.onTerminal(&Cmd{Cmd: cmd, t: t, line: "wherry run -it", cancel: func() { _ = cmd.Process.Kill() }}, pty.Winsize{Rows: 33, Cols: 77})
		c.Await("here")
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if code := c.code(); code != 129 {
			t.Errorf("exit code %d, want 129\n%s", code, c.Text())
		}
		s.noPods()
	})
}

// wherry run -f takes a folder and a URL, several at once; what it does not take gets advice that works here.
func TestRunSources(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	pod := strings.ReplaceAll(`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {restartPolicy: Never, containers: [{name: c, image: BUSYBOX, command: [sh, -c, "cat /v/*"],
  volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, projected: {sources: [{secret: {name: one}}, {secret: {name: two}}]}}]}}`, "BUSYBOX", images.BusyboxRef)
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {%s: here}}\n"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, pod) }))
	defer web.Close()
	folder := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(folder, name+".yml"), fmt.Appendf(nil, secret, name, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := s.runImage("--rm", "-f", web.URL+"/pod.yaml", "-f", folder).exits(0)
	if r.Out != "herehere" && r.Out != "herehere\n" {
		t.Errorf("it printed %q", r.Out)
	}
	s.runImage("-f", manifestFile(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {}}\n")).exits(125).
		Says("yaml:1: spec.selector: Required value", "yaml:1: spec.template.spec.containers: Required value")
	s.runImage("-f", manifestFile(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}}\n")).exits(125).
		Says("wherry run does not support Lease", "create it first, with wherry kubectl apply -f")
	s.runImage("-f", manifestFile(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}}\n")).exits(125).
		Says("there is no pod in the manifest", "use wherry kubectl apply")
}

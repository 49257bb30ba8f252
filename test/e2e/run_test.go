// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wherryproject/wherry/test/images"
)

// manifest writes a file for wherry run. SH stands for a container's image and shell.
func manifestFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pod.yaml")
	text = strings.NewReplacer("BUSYBOX", images.BusyboxRef, "TOOL", images.ToolRef).Replace(text)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const runTwo = `
apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  restartPolicy: Never
  initContainers: [{name: prep, image: BUSYBOX, command: [sh, -c, "echo preparing"]}]
  containers:
  - {name: good, image: BUSYBOX, command: [sh, -c, "echo from good"]}
  - {name: bad, image: BUSYBOX, command: [sh, -c, "echo from bad >&2; printf unfinished; exit 7"]}
`

// wherry run: the pod's exit code is the command's; output goes where the containers wrote it, with their names in front as there are
// several; progress goes elsewhere.
func TestRunExitCodeAndOutput(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	r := runWherry(t, nil, "run", "--rm", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", manifestFile(t, runTwo)).exits(7)
	r.Has("prep | preparing\n", "good | from good\n", "bad | unfinished\n")
	r.Says("scheduled to node", "prep", "bad failed with exit code 7", "bad | from bad\n")
	if strings.Contains(r.Out, "scheduled") || strings.Contains(r.Out, "from bad") {
		t.Errorf("progress or standard error is in the output:\n%s", r.Out)
	}
	if pods := s.Kubectl("get", "pods", "-o", "name").Out; pods != "" {
		t.Errorf("--rm left %s", pods)
	}
	r = runWherry(t, func(c *exec.Cmd) {
		c.Stdin = strings.NewReader(strings.NewReplacer("BUSYBOX", images.BusyboxRef, "exit 7", "exit 0", "two", "fine").Replace(runTwo))
	},
		"run", "-q", "-o", "name", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", "-").exits(0)
	if r.Out != "pod/fine\n" {
		t.Errorf("with -o name standard output has %q", r.Out)
	}
	for _, line := range strings.Split(strings.TrimSpace(r.Err), "\n") {
		if !strings.Contains(line, " | ") {
			t.Errorf("--quiet says %q", line)
		}
	}
	s.Kubectl("get", "pod", "fine") // without --rm it stays
	again := runWherry(t, nil, "run", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", manifestFile(t, strings.ReplaceAll(runTwo, "two", "fine"))).exits(125)
	again.Says("fine already exists", "generateName")
	s.Kubectl("get", "pod", "fine") // and the failed run did not delete what was not its own
}

// wherry run: Ctrl-C deletes the pod, waits for its end, and ends with 130; a second one does not wait.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for name, c := range map[string]struct {
		command string
		signals int
		most    time.Duration
	}{
		"once":  {"[sleep]", 1, 20 * time.Second},
		"twice": {"[stubborn]", 2, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.With(t)
			text := strings.NewReplacer("NAME", name, "COMMAND", c.command).Replace(`
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {terminationGracePeriodSeconds: 60, containers: [{name: c, image: TOOL, args: COMMAND}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-NAME}
`)
			cmd := exec.Command(world(t).Wherry, "run", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", manifestFile(t, text))
			p := (&Cmd{Cmd: cmd, t: t, line: "wherry run", cancel: func() { _ = cmd.Process.Kill() }}).StartProcess()
			p.Out.Await("\n")
			began := time.Now()
			p.Signal(os.Interrupt)
			p.Err.Await("deleting; press Ctrl-C again")
			if c.signals > 1 {
				p.Out.Await("ignored terminated")
				p.Signal(os.Interrupt)
				p.Err.Await("killing")
			}
			if code := p.Wait(); code != 130 {
				t.Errorf("exit code %d, want 130\n%s", code, p.Err.Text())
			}
			if took := time.Since(began); took > c.most {
				t.Errorf("it took %s", took)
			}
			if left := s.Kubectl("get", "pods,configmaps", "-o", "name", "--field-selector", "metadata.name!=kube-root-ca.crt").Out; left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// wherry run: --detach returns when the pod is ready and leaves it; --timeout ends with 124, and deletes only what --rm
// promised to delete.
func TestRunDetachAndTimeout(t *testing.T) {
	t.Parallel()
	s := shared(t)
	const text = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: TOOL, args: [http]}]}
`
	runWherry(t, nil, "run", "--detach", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", manifestFile(t, text)).exits(0).Says("ready")
	s.Kubectl("get", "pod", "p").Has("1/1", "Running")
	pod := s.Get("p")
	s.Delete("p")
	s.WaitGone(pod)
	runWherry(t, nil, "run", "--timeout", "2s", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", manifestFile(t, text)).exits(124).
		Says("not finished after 2s", "was not deleted", "wherry debug -n "+s.Namespace+" p")
	pod = s.Get("p")
	s.Delete("p")
	s.WaitGone(pod)
	runWherry(t, nil, "run", "--rm", "--timeout", "2s", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", manifestFile(t, text)).exits(124).Says("not finished after 2s")
	if pods := s.Kubectl("get", "pods", "-o", "name").Out; pods != "" {
		t.Errorf("left: %s", pods)
	}
}

// wherry run without a server brings one up for the duration, in its data folder, and takes it down again, also when it is
// interrupted.
func TestRunBringsUpServer(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t) // for a data folder with images
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	withDir := func(c *exec.Cmd) { c.Env = append(c.Env, "WHERRY_DATA_DIR="+srv.DataDir) }
	r := runWherry(t, withDir, "run", "--rm", "-f", manifestFile(t, runTwo)).exits(7)
	r.Says("no server is running", "server is running").Has("good | from good")
	runWherry(t, withDir, "run", "--detach", "-f", manifestFile(t, runTwo)).exits(125).Says("--detach needs a server that keeps running", "wherry server")

	cmd := srv.Wherry(t.Context(), "run", "-f", manifestFile(t, `
apiVersion: v1
kind: Pod
metadata: {name: long}
spec: {containers: [{name: c, image: TOOL, args: [sleep]}]}
`))
	p := (&Cmd{Cmd: cmd, t: t, line: "wherry run", cancel: func() { _ = cmd.Process.Kill() }}).StartProcess()
	p.Out.Await("sleeping")
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 143 {
		t.Errorf("exit code %d, want 143\n%s", code, p.Err.Text())
	}
	// A shim takes a moment to end after its pod has.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left, err := processesWith(srv.DataDir + "/")
		if err == nil && len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("left: %v (%v)", left, err)
			break
		}
	}
}

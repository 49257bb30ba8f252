// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// runProcess starts wherry run against the shared server, with more arguments.
func (s *Space) runProcess(cmd *exec.Cmd) *Process {
	return (&Cmd{Cmd: cmd, t: s.T, line: "wherry run", cancel: func() { _ = cmd.Process.Kill() }}).StartProcess()
}

func (s *Space) runArgs(args ...string) *exec.Cmd {
	return exec.Command(world(s.T).Wherry, append([]string{"run", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace}, args...)...)
}

// noPods checks that --rm left no pod.
func (s *Space) noPods() {
	s.T.Helper()
	if pods := s.Kubectl("get", "pods", "-o", "name").Out; pods != "" {
		s.T.Errorf("--rm left %s", pods)
	}
}

const endless = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: BUSYBOX, command: [sh, -c, "while echo line; do sleep 0.1; done"]}]}
`

// wherry run | head -1, and a terminal that is closed: the run ends as by Ctrl-C, and --rm leaves no pod.
func TestRunLosesItsReader(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	t.Run("pipe", func(t *testing.T) {
		s := s.With(t)
		cmd := s.runArgs("--rm", "-f", manifestFile(t, endless))
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "line\n" {
			t.Errorf("read %q, %v", line, err)
		}
		out.Close()
		if code, err := exitCode(cmd.Wait()); code != 141 {
			t.Errorf("exit code %d, want 141 (%v)\n%s", code, err, said.String())
		}
		s.noPods()
	})
	t.Run("hangup", func(t *testing.T) {
		s := s.With(t)
		p := s.runProcess(s.runArgs("--rm", "-f", manifestFile(t, endless)))
		p.Out.Await("line")
		p.Signal(syscall.SIGHUP)
		p.Signal(syscall.SIGHUP)
		if code := p.Wait(); code != 129 {
			t.Errorf("exit code %d, want 129\n%s", code, p.Err.Text())
		}
		if strings.Contains(p.Err.Text(), "killing") {
			t.Errorf("a second hangup kills:\n%s", p.Err.Text())
		}
		s.noPods()
	})
}

// PL-15: wherry run tells once what keeps a pod from being begun, and begins it when that is mended; --fail-fast gives up, and leaves
// the pod to be looked into.
func TestRunSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	file := manifestFile(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  containers: [{name: c, image: BUSYBOX, command: [cat, /v/word], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, secret: {secretName: late}}]
`)
	r := runWherry(t, nil, append(s.runArgs("--fail-fast", "-f", file).Args[1:], "--timeout", "1m")...).exits(125)
	r.Says("cannot start", `secret "late" not found`, "was not deleted")
	pod := s.Get("p")
	s.Delete("p")
	s.WaitGone(pod)

	p := s.runProcess(s.runArgs("--rm", "-f", file))
	p.Err.Await(`secret "late" not found`)
	s.Kubectl("create", "secret", "generic", "late", "--from-literal=word=here")
	if code := p.Wait(); code != 0 || p.Out.Text() != "here" && p.Out.Text() != "here\n" {
		t.Errorf("exit code %d, output %q\n%s", code, p.Out.Text(), p.Err.Text())
	}
	if n := strings.Count(p.Err.Text(), "cannot start yet"); n != 1 {
		t.Errorf("told %d times:\n%s", n, p.Err.Text())
	}
}

// wherry run: a program reads standard output. One container's is as it was written, and -o json is alone.
func TestRunForPrograms(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	const text = `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {restartPolicy: Never, containers: [{name: c, image: BUSYBOX, command: [sh, -c, "printf 'a\\001\\377b\\n'; echo no >&2; exit 4"]}]}
`
	r := runWherry(t, nil, s.runArgs("--rm", "-q", "-f", manifestFile(t, text)).Args[1:]...).exits(4)
	if r.Out != "a\001\377b\n" || !strings.HasPrefix(r.Err, "no\n") {
		t.Errorf("standard output %q, standard error %q", r.Out, r.Err)
	}
	r = runWherry(t, nil, s.runArgs("--rm", "-o", "json", "--prefix", "-f", manifestFile(t, text)).Args[1:]...).exits(4).Says("c | no\n", "c | a")
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(r.Out), &pod); err != nil || pod.Name != "p" {
		t.Errorf("standard output is no pod: %v\n%s", err, r.Out)
	}
}

// wherry run --fail-fast ends with the code of the container that crashed, and leaves the pod.
func TestRunCrash(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	file := manifestFile(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: BUSYBOX, command: [sh, -c, "echo out; exit 9"]}]}
`)
	runWherry(t, nil, append(s.runArgs("--fail-fast", "-f", file).Args[1:], "--timeout", "2m")...).exits(9).Says("CrashLoopBackOff", "was not deleted").Has("out\n")
	if p := s.Get("p"); p.DeletionTimestamp != nil {
		t.Error("the pod is being deleted")
	}
}

// PL-15: wherry run tells why a pod's sandbox cannot be made; --fail-fast gives up with 125 and leaves the pod, --timeout ends
// with 124.
func TestRunWithoutSandbox(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := shared(t)
	file := manifestFile(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: Never
  securityContext: {sysctls: [{name: net.ipv4.ip_local_port_range, value: nonsense}]}
  containers: [{name: c, image: BUSYBOX, command: ["true"]}]
`)
	r := runWherry(t, nil, s.runArgs("--fail-fast", "-f", file).Args[1:]...).exits(125)
	r.Says("cannot start", "ip_local_port_range", "was not deleted")
	pod := s.Get("p")
	s.Delete("p")
	s.WaitGone(pod)
	r = runWherry(t, nil, s.runArgs("--rm", "--timeout", "5s", "-f", file).Args[1:]...).exits(124)
	if n := strings.Count(r.Err, "cannot start yet"); n != 1 {
		t.Errorf("told %d times:\n%s", n, r.Err)
	}
	s.noPods()
}

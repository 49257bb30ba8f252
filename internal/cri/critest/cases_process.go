// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

func processCases() []Case {
	return []Case{
		{"logs are written in CRI format (PL-09)", testLogs},
		{"a log is opened anew after rotation (PL-09)", testReopen},
		{"exec gives output and exit code", testExec},
		{"an exec that takes too long is killed and says so", testExecTimeout},
		{"exec needs a running container", testExecNotRunning},
		{"PID-03 PID-04 namespaces are isolated, the pod's or the node's", testPIDModes},
		{"PID-07 TARGET is the target's namespace", testTargetModes},
		{"PID-08 only a running container of the same pod is a target", testTargetErrors},
		{"PID-07 a debugger dies with its target", testTargetDies},
	}
}

var logLine = regexp.MustCompile(`^(\S+) (stdout|stderr) F (.*)$`)

func (p *pod) logPath(name string, n int) string {
	return filepath.Join(p.config.GetLogDirectory(), name, fmt.Sprintf("%d.log", n))
}

// mkLogDir makes the folder of a container's logs, as the agent does: runtimes do not.
func (p *pod) mkLogDir(name string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.logPath(name, 0)), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func testLogs(t *testing.T, e Env) {
	p := newPod(t, e)
	p.mkLogDir("main")
	p.ended(p.up("main", []string{"run_for=0s", "stdout=one two", "stderr=three"}))
	seen := map[string]string{}
	p.until("both lines in the log", func() bool {
		data, err := os.ReadFile(p.logPath("main", 0))
		return err == nil && strings.Count(string(data), "\n") == 2
	})
	data, _ := os.ReadFile(p.logPath("main", 0))
	for line := range strings.Lines(string(data)) {
		m := logLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not a line in CRI format: %q", line)
		}
		if _, err := time.Parse(time.RFC3339Nano, m[1]); err != nil {
			t.Errorf("time of a log line: %v", err)
		}
		seen[m[2]] = m[3]
	}
	if seen["stdout"] != "one two" || seen["stderr"] != "three" {
		t.Errorf("log: %q", data)
	}
}

func testReopen(t *testing.T, e Env) {
	p := newPod(t, e)
	p.mkLogDir("main")
	id := p.up("main", nil)
	path := p.logPath("main", 0)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Runtime.ReopenContainerLog(p.ctx(),
		&runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		t.Fatalf("ReopenContainerLog: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("no new log file: %v", err)
	}
	p.stop(id, 0)
	if _, err := p.client.Runtime.ReopenContainerLog(p.ctx(),
		&runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err == nil {
		t.Error("the log of an ended container was opened again")
	}
}

func testExec(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", nil)
	r, err := p.client.ExecSync(p.ctx(), id, entry("run_for=0s", "stdout=out", "stderr=err", "exit_code=7"),
		20*time.Second)
	if err != nil || r.ExitCode != 7 || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" {
		t.Errorf("ExecSync: %+v, %v", r, err)
	}
	if r, err := p.client.ExecSync(p.ctx(), id, entry("run_for=0s"), 0); err != nil || r.ExitCode != 0 {
		t.Errorf("ExecSync without time-out: %+v, %v", r, err)
	}
}

func testExecTimeout(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", nil)
	_, err := p.client.ExecSync(p.ctx(), id, entry("run_for=1m"), time.Second)
	if _, ok := errors.AsType[*cri.ExecTimeoutError](err); !ok {
		t.Errorf("ExecSync: %v, want a time-out", err)
	}
	if st := p.status(id); st.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("the container is %v after an exec in it timed out", st.GetState())
	}
}

func testExecNotRunning(t *testing.T, e Env) {
	p := newPod(t, e)
	for _, id := range []string{p.create("created", nil), p.ended(p.up("ended", []string{"run_for=0s"})).GetId()} {
		if _, err := p.client.ExecSync(p.ctx(), id, entry("run_for=0s"), time.Second); err == nil {
			t.Error("a command ran in a container that does not run")
		}
	}
	if _, err := p.client.ExecSync(p.ctx(), strings.Repeat("0", 64), entry(), time.Second); !cri.NotFound(err) {
		t.Errorf("exec in no container: %v, want NotFound", err)
	}
}

func testPIDModes(t *testing.T, e Env) {
	own, pod := runtimeapi.NamespaceMode_CONTAINER, runtimeapi.NamespaceMode_POD
	p := newPod(t, e)
	if p.namespace(p.up("a", nil, pidMode(own, ""))) == p.namespace(p.up("b", nil, pidMode(own, ""))) {
		t.Error("two isolated containers share a PID namespace")
	}
	p = newPod(t, e, sandboxPID(pod))
	if p.namespace(p.up("a", nil, pidMode(pod, ""))) != p.namespace(p.up("b", nil, pidMode(pod, ""))) {
		t.Error("two containers in the pod's PID namespace do not share it")
	}
	node := runtimeapi.NamespaceMode_NODE
	p, q := newPod(t, e, sandboxPID(node)), newPod(t, e, sandboxPID(node))
	if p.namespace(p.up("a", nil, pidMode(node, ""))) != q.namespace(q.up("b", nil, pidMode(node, ""))) {
		t.Error("two containers in the node's PID namespace do not share it")
	}
}

func testTargetModes(t *testing.T, e Env) {
	for _, mode := range []runtimeapi.NamespaceMode{runtimeapi.NamespaceMode_CONTAINER, runtimeapi.NamespaceMode_POD,
		runtimeapi.NamespaceMode_NODE} {
		p := newPod(t, e, sandboxPID(mode))
		target := p.up("target", nil, pidMode(mode, ""))
		debugger := p.up("debugger", nil, pidMode(runtimeapi.NamespaceMode_TARGET, target))
		if got, want := p.namespace(debugger), p.namespace(target); got != want {
			t.Errorf("target in mode %v: debugger in %s, target in %s", mode, got, want)
		}
	}
}

func testTargetErrors(t *testing.T, e Env) {
	p, other := newPod(t, e), newPod(t, e)
	here, elsewhere := p.up("main", nil), other.up("main", nil)
	ended := p.up("ended", []string{"run_for=0s"})
	p.ended(ended)
	for what, id := range map[string]string{
		"a sandbox": p.sandbox, "another pod's container": elsewhere, "an unknown id": strings.Repeat("0", 64),
		"a part of an id": here[:16], "no id": "", "an ended container": ended,
	} {
		if _, err := p.client.Runtime.CreateContainer(p.ctx(),
			p.request("debugger", nil, pidMode(runtimeapi.NamespaceMode_TARGET, id))); err == nil {
			t.Errorf("%s was accepted as a PID namespace target", what)
		}
	}
	// and the refused ones left nothing reserved
	p.create("debugger", nil, pidMode(runtimeapi.NamespaceMode_TARGET, here))
}

func testTargetDies(t *testing.T, e Env) {
	p := newPod(t, e)
	target := p.up("target", nil)
	debugger := p.up("debugger", nil, pidMode(runtimeapi.NamespaceMode_TARGET, target))
	p.stop(target, 0)
	if st := p.ended(debugger); st.GetExitCode() != 137 {
		t.Errorf("the debugger ended with %d", st.GetExitCode())
	}
}

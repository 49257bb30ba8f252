// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/test/images"
)

// TestCapture: a pod is captured while one container runs and another is in a crash loop: what it is, what happened, logs of the run
// before too, what the kernel tells of its processes, and files, also of the dead one; nothing that comes from a Secret is in it unless
// that was asked for, what cannot be had is said, and a bundle is looked into without the cluster (DA-12).
func TestCapture(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.secret("login", map[string]string{"password": "hidden-one"})
	k.configMap("conf", map[string]string{"app.conf": "of a volume\n"})
	k.pod(`
metadata: {name: web}
spec:
  containers:
  - {name: main, command: [sh, -c, "echo up; echo setting >/tmp/app.conf; IDLE"], env: [{name: PLAIN, value: hidden-two},
     {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: password}}}]}
  - {name: plain, securityContext: {runAsUser: 1000}, command: [sh, -c, IDLE], volumeMounts: [{name: conf, mountPath: /etc/app}]}
  - {name: crash, command: [sh, -c, "echo last words; echo trace >/tmp/trace; exit 3"]}
  volumes: [{name: conf, configMap: {name: conf}}]
`)
	k.Wait("web", "in a crash loop", func(p *corev1.Pod) bool {
		s := Status(p, "crash")
		return s != nil && s.LastTerminationState.Terminated != nil && Status(p, "main").State.Running != nil
	})
	k.awaitLog("web", "main", "up")
	file := filepath.Join(t.TempDir(), "web.tar.zst")
	made := k.wherry(nil, "capture", "web", "-o", file, "--file", "crash:/tmp/trace", "--file", "main:/tmp/*.conf", "--file", "main:/none", "--file", "plain:/etc/app/app.conf").exits(0)
	made.Has(file+": pod "+k.Namespace+"/web").Says("not in it:", "/none does not exist")
	show := func(args ...string) Result {
		t.Helper()
		return runWherry(t, func(c *exec.Cmd) { c.Env = []string{"HOME=/nonexistent"} }, append([]string{"capture", "show", file}, args...)...)
	}
	show().exits(0).Has("pod "+k.Namespace+"/web", "phase Running", "crash", "ended with 3 (Error)", "last words", "PROCESSES", "sh -c echo up",
		"containers/main/proc/", "logs/crash.previous.log", "NOT IN IT")
	list := show("--list").exits(0).Has("pod.yaml", "events.yaml", "node.yaml", "timeline.json", "logs/main.log", "containers/main/proc/1/maps",
		"containers/main/proc/1/fds", "containers/main/proc/1/mountinfo", "containers/main/net/tcp", "files/crash/tmp/trace", "files/main/tmp/app.conf", "files/plain/etc/app/app.conf",
		"containers/plain/proc/1/fds", "containers/plain/proc/1/maps").
		HasNot("environ")
	var all strings.Builder
	for name := range strings.Lines(list.Out) {
		all.WriteString(show(strings.TrimSpace(name)).exits(0).Out)
	}
	for _, secret := range []string{"hidden-one", "hidden-two"} {
		if strings.Contains(all.String(), secret) {
			t.Errorf("DA-12 %s is in the bundle", secret)
		}
	}
	for _, want := range []string{"setting\n", "trace\n", "of a volume\n", "[stack]", "uid: " + string(k.Get("web").UID), capture.LeftOut} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("DA-12 %q is not in the bundle", want)
		}
	}
	var m capture.Manifest
	if err := json.Unmarshal([]byte(show("-o", "json").exits(0).Out), &m); err != nil || m.Node != k.NodeName || m.Secrets {
		t.Errorf("%+v, %v", m, err)
	}
	k.wherry(nil, "capture", "web", "-o", file, "--secrets", "--max-size", "3Mi", "-q").exits(0)
	show("containers/main/proc/1/environ").exits(0).Has("PASSWORD=hidden-one")
	show("none").exits(1).Says("--list")
	k.wherry(nil, "capture", "none", "-o", file).exits(1).Says("none", "not found")
	k.wherry(nil, "capture", "web", "-o", t.TempDir()+"/no/such").exits(1).Says("no such")
	k.wherry(nil, "capture", "web", "--max-size", "much").exits(2).Says("--max-size")
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// capturesDocker: a container of Docker, running and ended, is captured without a server (DA-12).
func capturesDocker(h onHost) {
	file := filepath.Join(h.TempDir(), "web.tar.zst")
	h.wherry("capture", "docker:web", "-o", file, "--file", "/etc/passwd").exits(0).Has(file + ": docker:web")
	h.wherry("capture", "show", file).exits(0).Has("docker:web, captured", "image "+images.ToolRef+", running", "PROCESSES", "containers/web/proc/")
	h.wherry("capture", "show", file, "containers/web/proc/1/status").exits(0).Has("Name:\ttool")
	h.wherry("capture", "pid:"+strconv.Itoa(os.Getpid()), "-o", file).exits(0)
	for name := range strings.Lines(h.wherry("capture", "show", file, "--list").exits(0).Out) {
		if strings.HasPrefix(name, "containers/") && strings.Contains(name, "/proc/1/") {
			h.Errorf("DA-12 the bundle of a process has another one's %s", name)
		}
	}
	h.wherry("capture", "docker:dead", "-o", file).exits(0).Says("it does not run")
	h.wherry("capture", "show", file).exits(0).Has("exited with 3", "last words")
	h.nothingLeft()
}

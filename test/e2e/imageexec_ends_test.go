// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/wherryproject/wherry/test/images"
)

// TestImageExecErrors: what cannot be done is answered at once, in words, before there are streams, and leaves nothing (IX-02,
// IX-10, IX-12).
func TestImageExecErrors(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.up(`{metadata: {name: careful}, spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000}, containers: [{name: main, command: [sh, -c, "echo mine > /tmp/mine; IDLE"]}]}}`)
	k.up(`{metadata: {name: nouser}, spec: {securityContext: {runAsNonRoot: true}, containers: [{name: main, securityContext: {runAsUser: 1000, runAsNonRoot: true}, command: [sh, -c, IDLE]}]}}`)
	k.pod(`{metadata: {name: pulling}, spec: {containers: [{name: main, image: "127.0.0.1:1/no/such:1"}]}}`)
	k.Wait("pulling", "in its sandbox", func(p *corev1.Pod) bool { return p.Status.PodIP != "" })
	k.WaitWaiting("pulling", "main", "ImagePullBackOff")
	for name, c := range map[string]struct {
		pod    string
		change func(*imageExec)
		want   []string
	}{
		"no image":         {"app", func(x *imageExec) { x.image = "" }, []string{"you must specify the image"}},
		"a bad image name": {"app", func(x *imageExec) { x.image = "UPPER:1" }, []string{"UPPER"}},
		"no registry":      {"app", func(x *imageExec) { x.image = "127.0.0.1:1/no/such:1" }, []string{"127.0.0.1:1", "cannot be reached"}},
		"no such target":   {"app", target("nobody"), []string{`"nobody"`}},
		"no such pod":      {"nobody", func(*imageExec) {}, []string{`"nobody"`}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &kit{k.With(t), t}
			for _, spdy := range []bool{false, true} {
				var out, errs bytes.Buffer
				x := imageExec{image: images.BusyboxRef, command: []string{"true"}, stdout: &out, stderr: &errs, ctx: k.ctx(), spdy: spdy}
				c.change(&x)
				code, err := k.start(c.pod, x)
				if err == nil {
					t.Fatalf("code %d, %q", code, errs.String())
				}
				for _, w := range c.want {
					if spdy && !strings.Contains(err.Error(), w) {
						t.Errorf("the error does not say %q: %v", w, err)
					}
				}
			}
		})
	}
	t.Run("IX-10 what is left out is told", func(t *testing.T) {
		k := &kit{k.With(t), t}
		_, errs, code := k.into("pulling", "ls /c; cat /c/.wherry/notes >&2")
		if code != 0 || strings.Count(errs, "container main is left out: it has not run yet (ImagePullBackOff)") != 2 {
			t.Errorf("code %d, %q", code, errs)
		}
	})
	t.Run("a pod without root", func(t *testing.T) {
		k := &kit{k.With(t), t}
		out, errs, code := k.into("careful", "id -u; cat /c/main/tmp/mine; cat /c/.wherry/main/env | head -c 5; grep Cap.nd /proc/self/status")
		if code != 0 || !strings.HasPrefix(out, "1000\nmine\nPATH=") || !strings.Contains(out, "CapBnd:\t0000000000000000") || !strings.Contains(errs, "runAsNonRoot") {
			t.Errorf("code %d, %q, %q", code, out, errs)
		}
		k.shows("nouser", "id -u", "1000")
	})
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageExecDead: IX-09: the last files of containers that crash, and of pods that have ended.
func TestImageExecDead(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.configMap("settings", map[string]string{"color": "blue"})
	k.pod(`
metadata: {name: crash}
spec:
  containers:
  - {name: main, command: [sh, -c, "echo attempt >> /data/attempts; echo died > /why; echo last words; exit 3"], volumeMounts: [{name: v, mountPath: /data}]}
  - {name: other, command: [sh, -c, IDLE]}
  volumes: [{name: v, emptyDir: {}}]
`)
	k.pod(`
metadata: {name: failed}
spec:
  restartPolicy: Never
  containers:
  - name: main
    command: [sh, -c, "echo died > /why; echo gone > /data/x; echo last words >&2; exit 4"]
    ports: [{containerPort: 80, hostPort: 31999}]
    volumeMounts: [{name: v, mountPath: /data}]
  - {name: wrong, command: [/no/such/program]}
  volumes: [{name: v, emptyDir: {}}]
`)
	k.pod(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "echo made > /result"]}]}}`)
	t.Run("CrashLoopBackOff", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.WaitRestarts("crash", "main", 1) // what follows has the 20 s of the second back-off, from their beginning
		k.WaitWaiting("crash", "main", "CrashLoopBackOff")
		k.shows("crash", "cat /c/main/why; sort -u /c/main/data/attempts; cat /c/.wherry/main/log; grep exitCode /c/.wherry/main/status.json", "died\nattempt\nlast words\n  \"exitCode\": 3,")
		if _, errs, code := k.into("crash", "echo x > /c/main/new"); code == 0 || !strings.Contains(errs, "Read-only") {
			t.Errorf("writing: code %d, %q", code, errs)
		}
		k.shows("crash", "echo x > /c/main/new; cat /c/main/new", "x", writable)
		if _, errs, code := k.into("crash", "true", target("main")); code != 0 || !strings.Contains(errs, "container main is not running") {
			t.Errorf("a dead target: code %d, %q", code, errs)
		}
		k.shows("crash", "readlink /proc/1/ns/pid", k.sh("crash", "other", "readlink /proc/self/ns/pid"), target("other"))
	})
	t.Run("Failed", func(t *testing.T) {
		k := &kit{k.With(t), t}
		before := k.WaitPhase("failed", corev1.PodFailed)
		out, errs, code := k.into("failed", "cat /c/main/why /c/.wherry/main/log; ls -d /c/wrong/bin; cat /c/main/data/x; hostname; grep -c failed /etc/hosts")
		if out != "died\nlast words\n/c/wrong/bin\nfailed\n1\n" || code != 0 {
			t.Errorf("code %d, %q, %q", code, out, errs)
		}
		for _, want := range []string{"the command runs in its own network", "container main: /data is not shown"} {
			if !strings.Contains(errs, want) {
				t.Errorf("not told %q: %q", want, errs)
			}
		}
		k.shows("failed", "grep exitCode /c/.wherry/main/status.json", `  "exitCode": 4,`)
		k.shows("failed", "echo x > /c/main/new; cat /c/main/new", "x", writable)
		if after := k.Get("failed"); !reflect.DeepEqual(ofWorker(before), ofWorker(after)) {
			t.Errorf("the pod's status changed:\n%s", diff.Diff(before.Status, after.Status))
		}
	})
	t.Run("Succeeded", func(t *testing.T) {
		k := &kit{k.With(t), t}
		k.WaitPhase("done", corev1.PodSucceeded)
		k.shows("done", "cat /c/main/result", "made")
	})
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageExecLoop: IX-11: all pods of a namespace in a loop, nobody at a terminal, each exit code its own; many at once.
func TestImageExecLoop(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	for i, name := range []string{"a", "b", "c", "d"} {
		k.pod(fmt.Sprintf(`{metadata: {name: %s}, spec: {containers: [{name: main, command: [sh, -c, "echo %d > /number; touch /ready; IDLE"], readinessProbe: {exec: {command: [test, -e, /ready]}, periodSeconds: 1}}]}}`, name, i))
	}
	var all sync.WaitGroup
	for i, name := range []string{"a", "b", "c", "d"} {
		k.WaitReady(name)
		for range 3 {
			all.Go(func() {
				out, errs, code := k.into(name, "n=$(cat /c/main/number); echo pod $n; exit $n")
				if out != fmt.Sprintf("pod %d\n", i) || code != i {
					t.Errorf("%s: %q, code %d, %q", name, out, code, errs)
				}
			})
		}
	}
	all.Wait()
	if left := k.remains(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageExecGone: IX-05: a client that goes away takes the command with it, whatever that was at; so does the pod.
func TestImageExecGone(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /data}]}], volumes: [{name: v, emptyDir: {}}]}}`)
	k.pod(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "exit 1"]}]}}`)
	k.WaitPhase("done", corev1.PodFailed)
	nothing := func(t *testing.T) {
		t.Helper()
		k := &kit{k.With(t), t}
		k.awaitNothing()
	}
	// In the end these come at all the phases: before the pull, between container and start, while it runs.
	for _, pod := range []string{"app", "done"} {
		for _, after := range []time.Duration{5, 20, 40, 60, 80, 120, 200, 300} {
			t.Run(fmt.Sprintf("%s after %d ms", pod, after), func(t *testing.T) {
				k := &kit{k.With(t), t}
				ctx, cancel := context.WithTimeout(k.ctx(), after*time.Millisecond)
				defer cancel()
				_, err := k.start(pod, imageExec{image: images.BusyboxRef, command: []string{"sleep", "1000"}, stdout: io.Discard, stderr: io.Discard, ctx: ctx, spdy: after%40 == 0})
				if err == nil {
					t.Error("sleep 1000 ended")
				}
				nothing(t)
			})
		}
	}
	t.Run("silent and deaf", func(t *testing.T) {
		for _, spdy := range []bool{false, true} {
			k := &kit{k.With(t), t}
			ctx, cancel := context.WithCancel(k.ctx())
			out := &notice{text: "begun", then: cancel}
			_, err := k.start("app", imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "trap '' TERM HUP INT; echo begun; exec sleep 1000"}, stdout: out, ctx: ctx, spdy: spdy})
			if err == nil {
				t.Error("sleep 1000 ended")
			}
			nothing(t)
		}
	})
	t.Run("the pod is deleted", func(t *testing.T) {
		k := &kit{k.With(t), t}
		pod := k.up(`{metadata: {name: goes}, spec: {containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /data}]}], volumes: [{name: v, emptyDir: {medium: Memory}}]}}`)
		out := &notice{text: "begun", then: func() { k.Delete("goes") }}
		var errs bytes.Buffer
		code, err := k.start("goes", imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: out, stderr: &errs, ctx: k.ctx(), writable: true})
		if err == nil && (code != 137 || !strings.Contains(errs.String(), "the pod is being deleted")) {
			t.Errorf("code %d, said %q", code, errs.String())
		}
		k.WaitGone(pod)
		k.AwaitNoTrace(pod)
		nothing(t)
	})
}

// notice calls a function when a text is written.
type notice struct {
	text string
	then func()
	seen bytes.Buffer
	once sync.Once
}

func (n *notice) Write(p []byte) (int, error) {
	n.seen.Write(p)
	if strings.Contains(n.seen.String(), n.text) {
		n.once.Do(n.then)
	}
	return len(p), nil
}

// TestImageExecServerKilled: IX-05: what a killed server was at is taken away at its next start, or by purge, and the pod does not
// notice.
// ATTACK C4.
func TestImageExecServerKilled(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	srv := own(t)
	pods := func(k *kit) {
		k.up(`{metadata: {name: app}, spec: {containers: [{name: main, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /data}]}], volumes: [{name: v, emptyDir: {}}]}}`)
		k.pod(`{metadata: {name: done}, spec: {restartPolicy: Never, containers: [{name: main, command: [sh, -c, "exit 1"]}]}}`)
		k.WaitPhase("done", corev1.PodFailed)
	}
	under := func(k *kit) (ended *sync.WaitGroup) {
		t.Helper()
		ended = &sync.WaitGroup{}
		begun := make(chan struct{}, 2)
		for _, pod := range []string{"app", "done"} {
			out := &notice{text: "begun", then: func() { begun <- struct{}{} }}
			ended.Go(func() {
				_, _ = k.start(pod, imageExec{image: images.BusyboxRef, command: []string{"sh", "-c", "echo begun; exec sleep 1000"}, stdout: out, ctx: k.ctx(), writable: true})
				out.once.Do(func() { begun <- struct{}{} }) // so that a failure does not hang the test
			})
		}
		<-begun
		<-begun
		return ended
	}
	// After the test's space is gone, and before its server is purged: what purge finds of a server that was killed.
	t.Cleanup(func() {
		k := &kit{&Space{Server: srv, T: t, Namespace: "default", ctx: context.Background()}, t}
		pods(k)
		ended := under(k)
		srv.Kill()
		ended.Wait()
	})
	k := kitOn(t, srv)
	pods(k)
	ended := under(k)
	if len(k.folders()) < 4 { // a folder and a mount each
		t.Fatalf("no image exec under way: %v", k.folders())
	}
	before := k.Get("app")
	srv.Kill()
	ended.Wait()
	k.must(srv.Start(k.Context()))
	if left := append(k.remains(), k.folders()...); len(left) > 0 {
		t.Errorf("left after the next start: %v", left)
	}
	k.shows("app", "ls -d /c/main/data", "/c/main/data")
	if after := k.Get("app"); !reflect.DeepEqual(ofWorker(before).ContainerStatuses, ofWorker(after).ContainerStatuses) {
		t.Errorf("the pod noticed:\n%s", diff.Diff(before.Status, after.Status))
	}
}

// TestImageExecPull: IX-02: the image is fetched when the command runs, with the secrets of the pod that it runs in.
func TestImageExecPull(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	reg := k.Registry(t)
	reg.Lock("ann", "secret word")
	k.Kubectl("create", "secret", "docker-registry", "pull", "--docker-server="+reg.Host, "--docker-username=ann", "--docker-password=secret word")
	k.up(`{metadata: {name: with}, spec: {imagePullSecrets: [{name: pull}], containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	k.up(`{metadata: {name: without}, spec: {containers: [{name: main, command: [sh, -c, IDLE]}]}}`)
	ref := reg.Push(k.Server, images.ToolRef, "private/debug:1")
	tool := func(x *imageExec) { x.image, x.command = ref, []string{"/tool", "env", "IMAGE_SAYS"} }
	var out bytes.Buffer
	x := imageExec{stdout: &out, ctx: k.ctx(), spdy: true}
	tool(&x)
	if code, err := k.start("without", x); err == nil || !strings.Contains(err.Error(), "asks for credentials: add an imagePullSecret") {
		t.Errorf("without the secret: code %d, %v", code, err)
	}
	k.shows("with", "", "IMAGE_SAYS=hello", tool)
}

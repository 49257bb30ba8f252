// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const pods = `
apiVersion: v1
kind: Namespace
metadata: {name: people}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Namespace
metadata: {name: infra}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: ` + image + `
    command: [/bin/busybox, sh, -c, "echo hello > /tmp/f; exec /bin/busybox sleep 100000"]
    env: [{name: COLOUR, value: green}]
    volumeMounts: [{name: tmp, mountPath: /tmp}]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
  - name: crash
    image: ` + image + `
    command: [/bin/busybox, sh, -c, "echo dying; echo last > /home/last; exit 3"]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: home, mountPath: /home}]
  volumes: [{name: tmp, emptyDir: {}}, {name: home, emptyDir: {}}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: infra}
spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [/bin/busybox, sleep, "10000"]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: infra}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [/bin/busybox, sh, -c, "echo front > /f; exec /bin/busybox sleep 100000"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: held, namespace: infra}
spec:
  terminationGracePeriodSeconds: 0
  initContainers: [{name: migrate, image: "` + image + `", command: [/bin/busybox, sh, -c, "exit 3"]}]
  containers: [{name: main, image: "` + image + `", command: [/bin/busybox, sleep, "10000"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: host, namespace: infra}
spec: {hostNetwork: true, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + image + `", command: [/bin/busybox, sleep, "10000"]}]}
`

// DA-04 to DA-10: debugging is installed in a cluster of Kubernetes' own programs and used by people with the roles that
// come with it; nobody gets more than these allow.
func TestDebugging(t *testing.T) {
	a := admin(t)
	a.installBlind()
	if r := a.wherry("cluster", "install", "--image-pull-policy", "Never", "--cri-socket", os.Getenv("CLUSTER_CRI"),
		"--timeout", "90s"); r.code != 0 {
		t.Fatalf("install: %s\n%s", r, a.run("", "KUBECTL", "get", "pods,events", "-n", "wherry-debug"))
	}
	a.apply(pods)
	for _, pod := range []string{"shop/web", "infra/web", "infra/host"} {
		namespace, name, _ := strings.Cut(pod, "/")
		await(t, pod+" runs", func() bool {
			return a.run("", "KUBECTL", "get", "pod", "-n", namespace, name, "-o",
				"jsonpath={.status.containerStatuses[?(@.name=='main')].state.running.startedAt}").out != ""
		})
	}
	await(t, "crash has ended", func() bool {
		return strings.Contains(a.run("", "KUBECTL", "get", "pod", "-n", "shop", "web", "-o",
			"jsonpath={.status.containerStatuses[?(@.name=='crash')].lastState.terminated.exitCode}").out, "3")
	})
	users := map[string]user{}
	for _, name := range []string{"eve", "lou", "ann", "pat"} {
		users[name] = a.account(name)
	}
	a.bind("shop", "wherry-look", "lou")
	a.bind("shop", "wherry-debug", "ann")
	a.bind("infra", "wherry-debug", "ann")
	a.bind("infra", "wherry-privileged", "pat")
	t.Run("status", func(t *testing.T) {
		a.with(t).says(os.Getenv("CLUSTER_NODE"), "cluster", "status")
	})
	t.Run("shell", func(t *testing.T) { shell(t, a.with(t), users["ann"].with(t)) })
	t.Run("images", func(t *testing.T) { images(t, users["ann"].with(t)) })
	t.Run("copies", func(t *testing.T) { copies(t, users["ann"].with(t), users["lou"].with(t)) })
	t.Run("sessions", func(t *testing.T) { sessions(t, users["ann"].with(t)) })
	t.Run("roles", func(t *testing.T) { roles(t, users) })
	t.Run("forged", func(t *testing.T) { forged(t, a.with(t)) })
	t.Run("upgraded", func(t *testing.T) { upgraded(t, a.with(t), users["ann"].with(t)) })
	t.Run("lost", func(t *testing.T) { lost(t, a.with(t), users["ann"].with(t)) })
	t.Run("killed", func(t *testing.T) { killed(t, a.with(t), users["ann"].with(t)) })
	t.Run("audit", func(t *testing.T) { audited(t) })
	t.Run("uninstall", func(t *testing.T) { uninstall(t, a.with(t)) })
}

// shell: a debugger in a namespace that allows only the restricted; the pod is not changed (DA-05, DA-06).
func shell(t *testing.T, a, ann user) {
	before := a.kubectl("get", "pod", "-n", "shop", "web", "-o", "jsonpath={.spec}")
	ann.says("hello", "debug", "-n", "shop", "web", "--target", "main", "--", "cat", "/c/main/tmp/f")
	ann.says("COLOUR=green", "debug", "-n", "shop", "web", "--target", "main", "--", "cat", "/c/.wherry/main/env")
	if r := ann.wherry("debug", "-n", "shop", "web", "--target", "main", "--", "sh", "-c", "echo out; echo err >&2; exit 7"); r.code != 7 ||
		r.out != "out\n" || !strings.Contains(r.err, "err") {
		t.Errorf("a command's ends: %s", r)
	}
	if r := ann.run("typed", "WHERRY", "debug", "-n", "shop", "web", "--target", "main", "--", "cat"); r.out != "typed" || r.code != 0 {
		t.Errorf("what is typed: %s", r)
	}
	ann.says("busybox", "debug", "-n", "shop", "web", "--target", "main", "--", "ps")
	a.kubectl("rollout", "status", "-n", "infra", "deployment/front", "--timeout=60s")
	if r := ann.wherry("debug", "-n", "infra", "deployment/front", "--", "cat", "/c/main/f"); r.code != 0 || r.out != "front\n" ||
		!strings.HasPrefix(r.err, "deployment/front: pod front-") || !strings.Contains(r.err, "the newest of 2 that run") {
		t.Errorf("a pod of a Deployment: %s", r)
	}
	ann.says("front", "exec", "-n", "infra", "deploy/front", "-m", "wherry.dev/toolbox", "--", "cat", "/c/main/f")
	ann.says("f", "cp", "-q", "infra/deployment/front:/f", "-")
	ann.refused("there is deployment/front: it means one of its pods", "debug", "-n", "infra", "front", "--", "true")
	ann.refused("it waits for init container migrate, which fails with exit code 3", "debug", "-n", "infra", "held", "--", "true")
	if after := a.kubectl("get", "pod", "-n", "shop", "web", "-o", "jsonpath={.spec}"); after != before {
		t.Errorf("the pod was changed:\n%s\n%s", before, after)
	}
	ann.says("ann", "debug", "history", "-n", "shop", "web")
}

// images: a command beside all containers of a pod, also of one that has died (DA-02, DA-03).
func images(t *testing.T, ann user) {
	ann.says("crash\nmain\n", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--", "ls", "/c")
	ann.says("last", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--", "cat", "/c/crash/home/last")
	ann.says("dying", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--", "cat", "/c/.wherry/crash/log")
	ann.refused("is not writable", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--", "sh", "-c", "echo x > /c/main/tmp/x || { echo is not writable >&2; exit 1; }")
	ann.says("", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--writable", "--", "sh", "-c", "echo x > /c/main/tmp/x")
	ann.says("x", "debug", "-n", "shop", "web", "--target", "main", "--", "cat", "/c/main/tmp/x")
}

// copies: files in and out, with the role that may only look for what comes out (DA-08).
func copies(t *testing.T, ann, lou user) {
	dir := t.TempDir()
	lou.says("", "cp", "-c", "main", "shop/web:/tmp/f", dir+"/f")
	if text, err := os.ReadFile(dir + "/f"); err != nil || string(text) != "hello\n" {
		t.Errorf("copied out: %q, %v", text, err)
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, bytes.Repeat([]byte("0123456789abcdef"), 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	ann.says("", "cp", "-c", "main", big, "shop/web:/tmp/big")
	ann.says("", "cp", "-c", "main", "shop/web:/tmp/big", big+".back")
	if out, err := exec.Command("cmp", big, big+".back").CombinedOutput(); err != nil {
		t.Errorf("there and back: %s", out)
	}
	if r := ann.through(8<<20).wherry("cp", "-c", "main", "shop/web:/tmp/big", big+".cut"); r.code != 0 || !strings.Contains(r.err, "continues from where it was") {
		t.Errorf("a copy that is cut: %s", r)
	}
	if out, err := exec.Command("cmp", big, big+".cut").CombinedOutput(); err != nil {
		t.Errorf("after a cut: %s", out)
	}
	piped := ann.through(8<<20).wherry("cp", "-c", "main", "shop/web:/tmp/big", "-")
	archive := tar.NewReader(strings.NewReader(piped.out))
	_, err := archive.Next()
	text, rerr := io.ReadAll(archive)
	if piped.code != 0 || !strings.Contains(piped.err, "continues from where it was") || err != nil || rerr != nil ||
		!bytes.Equal(text, bytes.Repeat([]byte("0123456789abcdef"), 1<<20)) {
		t.Errorf("a cut copy to standard output: code %d, %d bytes, %v, %v, %s", piped.code, len(text), err, rerr, piped.err)
	}
	ann.says("", "debug", "-n", "shop", "web", "--target", "main", "--", "rm", "/proc/1/root/tmp/big")
	ann.says("", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--writable", "--", "sh", "-c",
		"ln -s /etc/shadow /c/main/tmp/out; ln -s ../../../../../../etc/shadow /c/main/tmp/up")
	for _, link := range []string{"out", "up"} {
		lou.says("", "cp", "-c", "main", "shop/web:/tmp/"+link, dir+"/"+link)
		if info, err := os.Lstat(dir + "/" + link); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("a link is copied as %v, %v", info, err)
		}
		lou.refused("not exist", "cp", "-c", "main", "shop/web:/tmp/"+link+"/../shadow", dir+"/s-"+link)
	}
	bundle := filepath.Join(dir, "web.tar.zst")
	if r := ann.wherry("capture", "-n", "shop", "web", "-o", bundle, "--file", "main:/tmp/f"); r.code != 0 || strings.Contains(r.err, "containers/main") {
		t.Errorf("capture: %s", r)
	}
	lou.refused("wherry-debug", "cp", "-c", "main", big, "shop/web:/tmp/big")
	lou.refused("wherry-debug", "debug", "-n", "shop", "web", "--target", "main", "--", "id")
}

// sessions: they are listed and can be stopped, and end with their time (DA-09).
func sessions(t *testing.T, ann user) {
	// What it leaves is not left to the first process of the container, which reaps nobody.
	long := ann.command(t.Context(), "WHERRY", "debug", "-n", "shop", "web", "--target", "main", "--", "sh", "-c",
		"sleep 1000 & (setsid sleep 1000 &); sleep 1000")
	var errs bytes.Buffer
	long.Stderr = &errs
	if err := long.Start(); err != nil {
		t.Fatal(err)
	}
	var id string
	await(t, "the session is listed", func() bool {
		var list struct {
			Items []struct{ Name, User, Status string }
		}
		r := ann.wherry("debug", "ls", "-n", "shop", "-o", "json")
		if json.Unmarshal([]byte(r.out), &list) == nil && len(list.Items) == 1 && strings.Contains(list.Items[0].User, "ann") {
			id = list.Items[0].Name
		}
		return id != ""
	})
	ann.says("stopped", "debug", "stop", "-n", "shop", "web", id)
	if err := long.Wait(); err == nil || !strings.Contains(errs.String(), "stopped by") {
		t.Errorf("the stopped session: %v, %s", err, errs.String())
	}
	if r := ann.wherry("debug", "-n", "shop", "web", "--target", "main", "--ttl", "1s", "--", "sh", "-c", "sleep 1000 & sleep 1000"); r.code == 0 ||
		!strings.Contains(r.err, "time limit") {
		t.Errorf("a session that has had its time: %s", r)
	}
	ann.noneDefunct("shop", "web", "main")
	if r := ann.wherry("debug", "-n", "shop", "web", "--target", "main", "--memory", "30Mi", "--", "sh", "-c", "head -c 100000000 /dev/zero | sort; exit $?"); r.code != 137 ||
		!strings.Contains(r.err, "the session has ended: it has reached its memory limit of 30Mi (--memory)") {
		t.Errorf("a session one of whose programs takes too much memory: %s", r)
	}
	await(t, "nothing is left", func() bool { return len(debugProcesses(t)) == 0 })
}

// noneDefunct: DA-09: sessions have left no process in a container that waits to be reaped.
func (u user) noneDefunct(namespace, pod, container string) {
	u.t.Helper()
	await(u.t, "the end of what is defunct", func() bool { // the machine's own first process may take its time
		r := u.wherry("debug", "-q", "-n", namespace, pod, "--target", container, "--", "ps")
		return r.code == 0 && !strings.Contains(r.out, " Z ")
	})
}

// killed: an agent that is killed in a session leaves nothing, and is there again (DA-09).
func killed(t *testing.T, a, ann user) {
	long := ann.begun("(setsid sleep 1000 &); sleep 1000")
	for _, pid := range agents(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
	}
	if err := long.wait(); err == nil {
		t.Error("the session has ended well")
	}
	await(t, "nothing is left", func() bool { return len(debugProcesses(t)) == 0 })
	a.kubectl("rollout", "status", "-n", "wherry-debug", "daemonset/wherry-debug-agent", "--timeout=60s")
	ann.noneDefunct("shop", "web", "main")
	ann.says("again", "debug", "-n", "shop", "web", "--target", "main", "--", "echo", "again")
}

// audited: what was done and what was refused is in kube-apiserver's log, with who it was (DA-05).
func audited(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("CLUSTER_AUDIT"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"username":"system:serviceaccount:people:ann"`, `"username":"system:serviceaccount:people:eve"`,
		`"subresource":"shell"`, `"subresource":"files"`, `"subresource":"exec"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the audit log has no %s", want)
		}
	}
}

func uninstall(t *testing.T, a user) {
	if r := a.wherry("cluster", "uninstall", "--yes"); r.code != 0 {
		t.Fatalf("%s", r)
	}
	if left := a.kubectl("get", "apiservice,clusterrole,clusterrolebinding,namespace", "-l", "app.kubernetes.io/part-of=wherry-debug", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	a.refused("wherry cluster install", "exec", "-n", "shop", "web", "-m", "wherry.dev/toolbox", "--", "ls")
}

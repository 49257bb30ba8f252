// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// An external runtime of another version: containerd 1.6, which has no stream of container events. A pod with an init and
// mains runs, is read and entered, its container's end is noticed, and it is deleted without a trace; a server that is killed
// finds it again.
// ATTACK C35.
func TestExternalRuntime(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: d.Flags()})
	k := inDefault(t, srv)
	node := k.Kubectl("get", "node", "-o", "jsonpath={.items[0].status.nodeInfo.containerRuntimeVersion}").Out
	if !strings.HasPrefix(node, "containerd://1.") {
		t.Errorf("the node's runtime is %q", node)
	}
	pod := k.up(`
metadata: {name: p}
spec:
  hostNetwork: true
  initContainers: [{name: i, command: [sh, -c, "echo init ran; echo x >/v/f"], volumeMounts: [{name: v, mountPath: /v}]}]
  containers:
  - {name: c, command: [sh, -c, 'cat /v/f; IDLE'], volumeMounts: [{name: v, mountPath: /v}], resources: {requests: {cpu: 10m}}}
  - {name: d, image: tool, args: [sleep]}
  volumes: [{name: v, emptyDir: {}}]
`)
	if got := k.log("p", "i") + k.awaitLog("p", "c", "x\n"); got != "init ran\nx\n" {
		t.Errorf("the logs are %q", got)
	}
	k.says("p", "c", "echo hello", "hello")
	if r := k.KubectlIn("typed", "exec", "-i", "p", "-c", "c", "--", "sh", "-c", "cat; exit 3"); r.Out != "typed" || r.Code != 3 {
		t.Errorf("kubectl exec: %q, code %d, %s", r.Out, r.Code, r.Err)
	}
	before := facts(pod)
	srv.Kill()
	k.must(srv.Start(context.Background()))
	if after := facts(k.WaitReady("p")); after != before {
		t.Errorf("SC-19 after kill -9 the pod is %s; it was %s", after, before)
	}
	k.stop1("p", "c")
	k.WaitRestarts("p", "c", 1)
	_, out := k.ran(`
metadata: {name: once}
spec: {hostNetwork: true, restartPolicy: Never, containers: [{name: c, command: [sh, -c, "echo done; exit 5"]}]}
`)
	if p := k.Get("once"); out != "done\n" || p.Status.Phase != corev1.PodFailed || Ended(p, "c").ExitCode != 5 {
		t.Errorf("the pod that ends: %s, log %q", summary(p), out)
	}
	pod = k.Get("p")
	for _, name := range []string{"p", "once"} {
		k.Delete(name)
	}
	ctx := k.ctx()
	k.must(k.awaitGone(ctx, "pods", "default", "p"))
	k.must(k.awaitGone(ctx, "pods", "default", "once"))
	if left := d.left(t, k, pod); len(left) > 0 {
		t.Errorf("PL-10 left:\n  %s", strings.Join(left, "\n  "))
	}
}

// left lists what the runtime and the node still have of pods.
func (d *Containerd) left(t *testing.T, k *kit, pod *corev1.Pod) []string {
	t.Helper()
	client, err := cri.Dial(k.ctx(), "unix://"+d.socket)
	k.must(err)
	defer client.Close()
	containers, err := client.Runtime.ListContainers(k.ctx(), &runtimeapi.ListContainersRequest{})
	k.must(err)
	boxes, err := client.Runtime.ListPodSandbox(k.ctx(), &runtimeapi.ListPodSandboxRequest{})
	k.must(err)
	var out []string
	for _, c := range containers.Containers {
		out = append(out, fmt.Sprintf("container %s %s", c.Metadata.Name, c.State))
	}
	for _, b := range boxes.Items {
		out = append(out, fmt.Sprintf("sandbox %s %s", b.Metadata.Name, b.State))
	}
	for _, look := range []func(...string) ([]string, error){mountsWith, processesWith, cgroupsWith, k.foldersWith} {
		found, err := look(append(containerIDs(pod), string(pod.UID))...)
		k.must(err)
		out = append(out, found...)
	}
	return out
}

// PL-15: a runtime that is not there is named, with what to do.
func TestExternalRuntimeAbsent(t *testing.T) {
	t.Parallel()
	w := world(t)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.Wherry, "server", "--data-dir", filepath.Join(dir, "d"), "--secure-port", "0", "--kubelet-port", "0",
		"--container-runtime-endpoint", "unix://"+dir+"/no.sock")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if code, err := exitCode(cmd.Run()); err != nil || code == 0 {
		t.Errorf("code %d, %v", code, err)
	}
	if !strings.Contains(errs.String(), dir+"/no.sock") {
		t.Errorf("the message does not name the socket:\n%s", errs.String())
	}
}

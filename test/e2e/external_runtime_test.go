// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/images"
)

// debian is Debian's containerd, of the package that `tools/setup.sh containerd` unpacks (or that is installed), on folders
// of its own. It is never run as a service.
type debian struct {
	dir    string
	socket string
	bin    string // folder of its programs
	log    string
	cmd    *exec.Cmd // its last start
}

func startDebian(t *testing.T) *debian {
	t.Helper()
	bin := ""
	for _, dir := range []string{"../../bin/debian/usr/bin", "/usr/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "containerd")); err == nil {
			bin, _ = filepath.Abs(dir)
			break
		}
	}
	if bin == "" {
		t.Skip("Debian's containerd is not here: run tools/setup.sh containerd, or apt-get install containerd")
	}
	dir, err := os.MkdirTemp("", "wh-ext-") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	d := &debian{dir: dir, socket: filepath.Join(dir, "c.sock"), bin: bin, log: filepath.Join(dir, "log")}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d.configure(t)
	t.Cleanup(func() { // of whichever process runs last: the server's folder is purged before, with its help
		if d.cmd == nil {
			return
		}
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		_ = d.cmd.Wait() // it ends with the signal's code, or has ended before
	})
	d.run(t)
	return d
}

// configure writes containerd's configuration. Pods of this test are on the host's network, so its CNI is only there to be
// ready.
func (d *debian) configure(t *testing.T) {
	t.Helper()
	files := map[string]string{
		"config.toml": `
version = 2
root = "DIR/root"
state = "DIR/state"
[grpc]
  address = "DIR/c.sock"
[ttrpc]
  address = "DIR/t.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + images.ToolRef + `"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "DIR/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "DIR/cni"
    conf_dir = "DIR/net.d"
`,
		"net.d/10-lo.conflist": `{"cniVersion":"0.4.0","name":"none","plugins":[{"type":"loopback"}]}`,
	}
	for name, text := range files {
		path := filepath.Join(d.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", d.dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (d *debian) run(t *testing.T) {
	t.Helper()
	out, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(d.bin, "containerd"), "--config", filepath.Join(d.dir, "config.toml"))
	cmd.Env = append(os.Environ(), "PATH="+d.bin+":"+filepath.Join(filepath.Dir(d.bin), "sbin")+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.cmd = cmd
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	for {
		client, err := cri.Dial(ctx, "unix://"+d.socket)
		if err == nil {
			_, err = client.Version(ctx)
			client.Close()
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(d.log) // for the message only
			t.Fatalf("Debian's containerd does not answer: %v\n%s", err, text)
		case <-time.After(50 * time.Millisecond): // a socket that is not there yet cannot be waited for
		}
	}
}

// load imports the tests' images with containerd's own tool.
func (d *debian) load(t *testing.T) {
	t.Helper()
	archives, err := world(t).Archives()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		cmd := exec.Command(filepath.Join(d.bin, "ctr"), "--address", d.socket, "-n", "k8s.io", "images", "import", a)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ctr images import %s: %v: %s", a, err, out)
		}
	}
}

// An external runtime of another version: containerd 1.6, which has no stream of container events. A pod with an init and
// mains runs, is read and entered, its container's end is noticed, and it is deleted without a trace; a server that is killed
// finds it again.
// ATTACK C35.
func TestExternalRuntime(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	d := startDebian(t)
	d.load(t)
	srv := own(t, ServerOptions{NoImages: true, Args: []string{"--container-runtime-endpoint", "unix://" + d.socket}})
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
func (d *debian) left(t *testing.T, k *kit, pod *corev1.Pod) []string {
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

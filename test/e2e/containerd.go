// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/images"
)

// Containerd is Debian's containerd, of the package that `tools/setup.sh containerd` unpacks (or that is installed), on
// folders of its own. It is never run as a service.
type Containerd struct {
	dir    string
	socket string
	bin    string // folder of its programs
	log    string
	cmd    *exec.Cmd // its last start
}

// StartContainerd starts it until the test's end; the test is skipped where it is not installed.
func StartContainerd(t testing.TB) *Containerd {
	t.Helper()
	bin := containerdPrograms()
	if bin == "" {
		t.Skip("Debian's containerd is not here: run tools/setup.sh containerd, or apt-get install containerd")
	}
	dir, err := os.MkdirTemp("", runtimePrefix) // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	if err := writePID(dir, ownerFile, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	d := &Containerd{dir: dir, socket: filepath.Join(dir, "c.sock"), bin: bin, log: filepath.Join(dir, "log")}
	t.Cleanup(func() { // of whichever process runs last: the server's folder is purged before, with its help
		if d.cmd != nil {
			_ = d.cmd.Process.Signal(syscall.SIGTERM)
			_ = d.cmd.Wait() // it ends with the signal's code, or has ended before
		}
		if err := removeRuntime(dir); err != nil {
			t.Error(err)
		}
	})
	d.configure(t)
	d.Run(t)
	return d
}

// containerdPrograms is the folder with Debian's; empty if they are not here.
func containerdPrograms() string {
	for _, dir := range []string{"../../bin/debian/usr/bin", "/usr/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "containerd")); err == nil {
			bin, _ := filepath.Abs(dir)
			return bin
		}
	}
	return ""
}

// configure writes containerd's configuration. Pods are on the host's network, unless Bridge gives them another, so its
// CNI is only there to be ready.
func (d *Containerd) configure(t testing.TB) {
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

// Bridge puts pods on a bridge, by Debian's CNI plug-ins, until the test's end. The runtime is started again for that.
// The test is skipped where they are not installed.
func (d *Containerd) Bridge(t testing.TB, name, subnet string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(d.dir, "cni"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		from := filepath.Join(filepath.Dir(d.bin), "lib/cni", plugin)
		if _, err := os.Stat(from); err != nil {
			t.Skipf("Debian's CNI plug-ins are not here: run tools/setup.sh containerd, or apt-get install containernetworking-plugins (%v)", err)
		}
		if err := os.Symlink(from, filepath.Join(d.dir, "cni", plugin)); err != nil {
			t.Fatal(err)
		}
	}
	conf := fmt.Sprintf(`{"cniVersion": "0.4.0", "name": %[1]q, "plugins": [{"type": "bridge", "bridge": %[1]q, "isGateway": true,
		"ipam": {"type": "host-local", "dataDir": %[2]q, "ranges": [[{"subnet": %[3]q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`,
		name, filepath.Join(d.dir, "ipam"), subnet)
	if err := errors.Join(os.WriteFile(filepath.Join(d.dir, "net.d/05-bridge.conflist"), []byte(conf), 0o644),
		os.WriteFile(filepath.Join(d.dir, bridgeFile), []byte(name), 0o644)); err != nil {
		t.Fatal(err)
	}
	// The plug-in would make it with the first pod.
	link := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(link); err != nil {
			t.Error(err)
		}
		if left, err := (footprint{bridge: name}).networkLeft(); len(left) > 0 || err != nil {
			t.Errorf("of the bridge %v is left (%v)", left, err)
		}
	})
	d.Kill()
	d.Run(t)
}

// Import has containerd's own tool import an archive of an image.
func (d *Containerd) Import(t testing.TB, archive string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(d.bin, "ctr"), "--address", d.socket, "-n", "k8s.io", "images", "import", archive)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ctr images import %s: %v: %s", archive, err, out)
	}
}

// Run starts it, at first or after it was killed, and returns when it answers.
func (d *Containerd) Run(t testing.TB) {
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

// Load imports the tests' images.
func (d *Containerd) Load(t testing.TB, w *World) {
	t.Helper()
	archives, err := w.Archives()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		d.Import(t, a)
	}
}

// Flags are those of `wherry server` on it. Its pods must be on the host's network.
func (d *Containerd) Flags() []string {
	return []string{"--container-runtime-endpoint", "unix://" + d.socket}
}

// Kill ends it by SIGKILL. What runs in its containers goes on.
func (d *Containerd) Kill() {
	_ = d.cmd.Process.Kill() // it may have ended
	_ = d.cmd.Wait()
}

// Pause lets it stand still until Resume.
func (d *Containerd) Pause() error { return d.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (d *Containerd) Resume() error { return d.cmd.Process.Signal(syscall.SIGCONT) }

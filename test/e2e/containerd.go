// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/test/images"
)

// Containerd is Debian's containerd, of the package that `tools/setup.sh containerd` unpacks (or that is installed), on folders
// of its own. It is never run as a service.
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
	d := &Containerd{dir: dir, socket: filepath.Join(dir, "c.sock"), bin: bin, log: filepath.Join(dir, "log")}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d.configure(t)
	t.Cleanup(func() { // of whichever process runs last: the server's folder is purged before, with its help
		if d.cmd == nil {
			return
		}
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		_ = d.cmd.Wait() // it ends with the signal's code, or has ended before
		if err := killWith(dir + "/"); err != nil {
			t.Error(err)
		}
	})
	d.Run(t)
	return d
}

// configure writes containerd's configuration. Pods of this test are on the host's network, so its CNI is only there to be
// ready.
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

// Load imports the tests' images with containerd's own tool.
func (d *Containerd) Load(t testing.TB, w *World) {
	t.Helper()
	archives, err := w.Archives()
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

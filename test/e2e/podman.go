// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Podman is Debian's podman, of the package that `tools/setup.sh podman` unpacks (or that is installed), on folders of
// its own, with runc.
type Podman struct {
	dir  string
	Path string // of a folder with a program podman that has all of its settings
}

// NeedPodman prepares it; the test is skipped where it is not installed.
func NeedPodman(t testing.TB) *Podman {
	t.Helper()
	root, runc := podmanPrograms()
	if root == "" || runc == "" {
		t.Skip("Debian's podman or runc is not here: run tools/setup.sh containerd podman, or apt-get install podman runc")
	}
	dir, err := os.MkdirTemp("", podmanPrefix) // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	if err := writePID(dir, ownerFile, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	p := &Podman{dir: dir, Path: filepath.Join(dir, "bin")}
	t.Cleanup(func() {
		p.Run(t, "rm", "--all", "--force", "--time", "0")
		if err := killWith(dir + "/"); err != nil {
			t.Error(err)
		}
		_ = exec.Command("umount", "-R", filepath.Join(dir, "root/overlay")).Run() // podman binds it to itself
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// An OOM score below this process' own takes a capability that a machine which is a container itself may lack.
	p.write(t, "runc-here", `#!/bin/sh
for arg; do
	[ "$last" != --bundle ] || sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$arg/config.json"
	last=$arg
done
exec `+runc+` "$@"
`)
	p.write(t, "policy.json", `{"default":[{"type":"insecureAcceptAnything"}]}`)
	libs := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	p.write(t, "bin/podman", `#!/bin/sh
case "$1 $2" in "image save") shift 2; set -- image save --signature-policy DIR/policy.json "$@" ;; esac # as Debian has it in /etc
LD_LIBRARY_PATH=`+libs+`:`+filepath.Join(root, "lib/x86_64-linux-gnu")+` exec `+filepath.Join(root, "usr/bin/podman")+
		` --root DIR/root --runroot DIR/run --tmpdir DIR/tmp --runtime DIR/runc-here --conmon `+
		filepath.Join(root, "usr/bin/conmon")+
		` --cgroup-manager cgroupfs --events-backend file --storage-driver overlay "$@"
`)
	return p
}

// podmanPrograms are the folder that Debian's package was unpacked into, and its runc; empty where they are not here.
func podmanPrograms() (root, runc string) {
	for _, dir := range []string{"../../bin/debian", "/"} {
		if _, err := os.Stat(filepath.Join(dir, "usr/bin/podman")); err == nil {
			root, _ = filepath.Abs(dir)
			break
		}
	}
	for _, path := range []string{"../../bin/debian/usr/sbin/runc", "/usr/sbin/runc", "/usr/bin/runc"} {
		if _, err := os.Stat(path); err == nil {
			runc, _ = filepath.Abs(path)
			break
		}
	}
	return root, runc
}

func (p *Podman) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", p.dir)), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Load imports the tests' images.
func (p *Podman) Load(t testing.TB, w *World) {
	t.Helper()
	archives, err := w.Archives()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		p.Run(t, "load", "--signature-policy", filepath.Join(p.dir, "policy.json"), "-i", a)
	}
}

// Run runs the podman program.
func (p *Podman) Run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(p.Path, "podman"), args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("podman %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Docker is Debian's dockerd, of the package that `tools/setup.sh docker` unpacks (or that is installed), on folders of
// its own and on a [Containerd]. It has no network of its own.
type Docker struct {
	Socket string
	client string // the docker program

	containerd string // the socket of its containerd
}

// StartDocker starts it until the test's end; the test is skipped where it is not installed.
func StartDocker(t testing.TB, on *Containerd) *Docker {
	t.Helper()
	root := dockerRoot()
	if root == "" {
		t.Skip("Debian's Docker is not here: run tools/setup.sh docker, or apt-get install docker.io")
	}
	daemon := filepath.Join(root, "usr/sbin/dockerd")
	dir := filepath.Join(on.dir, "docker")
	d := &Docker{Socket: filepath.Join(on.dir, "d.sock"), client: filepath.Join(root, "usr/bin/docker"),
		containerd: on.socket}
	log, err := os.Create(filepath.Join(on.dir, "docker.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(daemon, "--data-root", dir, "--exec-root", filepath.Join(on.dir, "docker-run"), "--host",
		"unix://"+d.Socket, "--pidfile", filepath.Join(on.dir, "docker.pid"), "--containerd", on.socket, "--bridge",
		"none", "--iptables=false", "--ip6tables=false", "--add-runtime", "here="+d.runtime(t), "--default-runtime",
		"here")
	cmd.Env = append(os.Environ(), "PATH="+on.bin+":"+filepath.Join(filepath.Dir(on.bin), "sbin")+":"+os.Getenv("PATH"),
		"LD_LIBRARY_PATH="+filepath.Join(root, "lib/x86_64-linux-gnu")+":"+
			filepath.Join(root, "usr/lib/x86_64-linux-gnu"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
		// The machine's network, for containers that are on it, which it leaves; there is none if no container was.
		left := filepath.Join(on.dir, "docker-run/netns/default")
		if err := syscall.Unmount(left, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.ENOENT) &&
			!errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", left, err)
		}
	})
	d.await(t, ended, log.Name())
	return d
}

// dockerRoot is the folder that Debian's package was unpacked into; empty if it is not here.
func dockerRoot() string {
	for _, dir := range []string{"../../bin/debian", "/"} {
		if _, err := os.Stat(filepath.Join(dir, "usr/sbin/dockerd")); err == nil {
			root, _ := filepath.Abs(dir)
			return root
		}
	}
	return ""
}

// runtime writes a program that is runc, but for an OOM score below this process' own: to set one takes a capability
// that a machine which is a container itself may lack, and cri-dockerd gives sandboxes -998.
func (d *Docker) runtime(t testing.TB) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(d.Socket), "runc-here")
	script := `#!/bin/sh
for arg; do
	[ "$last" != --bundle ] || sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$arg/config.json"
	last=$arg
done
exec runc "$@"
`
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// await returns when it answers.
func (d *Docker) await(t testing.TB, ended <-chan struct{}, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	for {
		conn, err := net.Dial("unix", d.Socket)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // a socket that is not there yet cannot be waited for
			continue
		}
		text, _ := os.ReadFile(log) // for the message only
		t.Fatalf("Debian's dockerd does not answer: %v\n%s", err, text)
	}
}

// Run runs the docker program.
func (d *Docker) Run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(d.client, append([]string{"--host", "unix://" + d.Socket}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

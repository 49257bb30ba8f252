// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"io/fs"
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

// CRI starts cri-dockerd on it until the test's end and returns its endpoint. Pods must be on the host's network. A
// test that was left without the program is skipped.
func (d *Docker) CRI(t testing.TB) string {
	t.Helper()
	program, err := filepath.Abs("../../bin/cri-dockerd")
	if err == nil {
		_, err = os.Stat(program)
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("bin/cri-dockerd is not built: make bin/cri-dockerd")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(d.Socket)
	endpoint := "unix://" + filepath.Join(dir, "cd.sock")
	log, err := os.Create(filepath.Join(dir, "cri-dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, "--container-runtime-endpoint", endpoint, "--docker-endpoint", "unix://"+d.Socket,
		"--cri-dockerd-root-directory", filepath.Join(dir, "cri-dockerd"), "--cni-cache-dir",
		filepath.Join(dir, "cni-cache"), "--cni-conf-dir", filepath.Join(dir, "net.d"), "--pod-infra-container-image",
		images.ToolRef, "--network-plugin", "", "--streaming-bind-addr", "127.0.0.1:0")
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
	})
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	for {
		client, err := cri.Dial(ctx, endpoint)
		if err == nil {
			_, err = client.Version(ctx)
			client.Close()
		}
		if err == nil {
			return endpoint
		}
		select {
		case <-ended:
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // a socket that is not there yet cannot be waited for
			continue
		}
		text, _ := os.ReadFile(log.Name()) // for the message only
		t.Fatalf("cri-dockerd does not answer: %v\n%s", err, text)
	}
}

// Load imports the tests' images.
func (d *Docker) Load(t testing.TB, w *World) {
	t.Helper()
	archives, err := w.Archives()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		d.Run(t, "load", "-i", a)
	}
}

// PIDMode is the HostConfig.PidMode of a container, by its id.
func (d *Docker) PIDMode(t testing.TB, id string) string {
	t.Helper()
	return strings.TrimSpace(d.Run(t, "inspect", "--format", "{{.HostConfig.PidMode}}", id))
}

// Sandbox is the id of a pod's sandbox.
func (d *Docker) Sandbox(t testing.TB, uid string) string {
	t.Helper()
	out := strings.Fields(d.Run(t, "ps", "--no-trunc", "--quiet", "--filter", "label=io.kubernetes.pod.uid="+uid,
		"--filter", "label=io.kubernetes.docker.type=podsandbox"))
	if len(out) != 1 {
		t.Fatalf("sandboxes of pod %s: %q", uid, out)
	}
	return out[0]
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/test/images"
)

// Etcd is an etcd process behind TLS with client certificates, for servers that keep their objects in one of somebody
// else's.
type Etcd struct {
	t        testing.TB
	path     string
	dir      string
	endpoint string
	Flags    []string // of wherry server
	cmd      *exec.Cmd
}

// StartEtcd builds etcd and starts it on a folder of its own, until the test's end.
func StartEtcd(t testing.TB) *Etcd {
	t.Helper()
	dir := t.TempDir()
	e := &Etcd{t: t, path: filepath.Join(dir, "etcd"), dir: dir}
	if err := images.GoBuildWith(t.Context(), e.path, "go.etcd.io/etcd/server/v3", "-s -w"); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.LoadOrCreate(dir, "etcd-ca")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Serving([]string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	e.write("serving.crt", cert)
	e.write("serving.key", key)
	if cert, key, err = ca.Client("wherry", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	e.endpoint = fmt.Sprintf("https://127.0.0.1:%d", FreePort(t))
	e.Flags = []string{"--etcd-servers", e.endpoint, "--etcd-cafile", filepath.Join(dir, "ca.crt"),
		"--etcd-certfile", e.write("client.crt", cert), "--etcd-keyfile", e.write("client.key", key)}
	e.Start()
	t.Cleanup(e.Stop)
	return e
}

func (e *Etcd) write(name string, data []byte) string {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// Start returns when etcd says that it serves its clients.
func (e *Etcd) Start() {
	e.t.Helper()
	e.cmd = exec.Command(e.path, "--data-dir", filepath.Join(e.dir, "data"), "--listen-client-urls", e.endpoint,
		"--advertise-client-urls", e.endpoint, "--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", FreePort(e.t)),
		"--cert-file", filepath.Join(e.dir, "serving.crt"), "--key-file", filepath.Join(e.dir, "serving.key"),
		"--trusted-ca-file", filepath.Join(e.dir, "ca.crt"), "--client-cert-auth")
	text, err := e.cmd.StderrPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "serving client traffic") {
			go func() { // else it blocks on its log
				for lines.Scan() {
				}
			}()
			return
		}
	}
	e.t.Fatalf("etcd does not serve (%v):\n%s", lines.Err(), said.String())
}

// Stop ends it by SIGTERM, if it runs.
func (e *Etcd) Stop() {
	if e.cmd.ProcessState != nil {
		return // before
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = e.cmd.Wait()
}

// Kill ends it by SIGKILL.
func (e *Etcd) Kill() {
	_ = e.cmd.Process.Kill() // it may have ended
	_ = e.cmd.Wait()
}

// Pause lets it stand still until Resume.
func (e *Etcd) Pause() error { return e.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (e *Etcd) Resume() error { return e.cmd.Process.Signal(syscall.SIGCONT) }

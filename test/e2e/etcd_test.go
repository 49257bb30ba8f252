// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
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

// A server that keeps its objects in an etcd of its own process, behind TLS with client certificates, runs pods like any other,
// also after it was killed; and without that etcd it says what it cannot reach.
// ATTACK C35.
func TestExternalEtcd(t *testing.T) {
	t.Parallel()
	world(t)
	etcd := startEtcd(t)
	srv := own(t, ServerOptions{Args: append(etcd.flags, "--etcd-prefix", "/elsewhere")})
	k := inDefault(t, srv)
	before := k.up("metadata: {name: kept}\nspec: {containers: [{name: c, image: tool, args: [sleep]}]}")
	if _, err := os.Stat(filepath.Join(srv.DataDir, "etcd")); !os.IsNotExist(err) {
		t.Errorf("the data folder has an etcd of its own: %v", err)
	}
	srv.Kill()
	k.must(srv.Start(t.Context()))
	if now := k.Get("kept"); facts(now) != facts(before) {
		t.Errorf("the pod is %s; it was %s", facts(now), facts(before))
	}
	k.Delete("kept")
	k.WaitGone(before)
	k.must(srv.Stop())
	etcd.stop()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	out, err := srv.Wherry(ctx, append([]string{"server", "--data-dir", srv.DataDir, "--secure-port", "0", "--kubelet-port", "0"}, etcd.flags...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "error: etcd at "+etcd.endpoint+" does not answer") || !strings.Contains(string(out), "--etcd-servers") {
		t.Errorf("without its etcd: %v: %s", err, out)
	}
	etcd.start() // for what purges
}

// realEtcd is an etcd process.
type realEtcd struct {
	t        *testing.T
	path     string
	dir      string
	endpoint string
	flags    []string // of wherry server
	cmd      *exec.Cmd
}

func startEtcd(t *testing.T) *realEtcd {
	t.Helper()
	dir := t.TempDir()
	e := &realEtcd{t: t, path: filepath.Join(dir, "etcd"), dir: dir}
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
	e.endpoint = fmt.Sprintf("https://127.0.0.1:%d", freePort(t))
	e.flags = []string{"--etcd-servers", e.endpoint, "--etcd-cafile", filepath.Join(dir, "ca.crt"),
		"--etcd-certfile", e.write("client.crt", cert), "--etcd-keyfile", e.write("client.key", key)}
	e.start()
	t.Cleanup(e.stop)
	return e
}

func (e *realEtcd) write(name string, data []byte) string {
	e.t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// start returns when etcd says that it serves its clients.
func (e *realEtcd) start() {
	e.t.Helper()
	e.cmd = exec.Command(e.path, "--data-dir", filepath.Join(e.dir, "data"), "--listen-client-urls", e.endpoint, "--advertise-client-urls", e.endpoint,
		"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", freePort(e.t)), "--cert-file", filepath.Join(e.dir, "serving.crt"),
		"--key-file", filepath.Join(e.dir, "serving.key"), "--trusted-ca-file", filepath.Join(e.dir, "ca.crt"), "--client-cert-auth")
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
	e.t.Fatalf("etcd does not serve:\n%s", said.String())
}

func (e *realEtcd) stop() {
	if e.cmd.ProcessState != nil {
		return // before
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = e.cmd.Wait()
}

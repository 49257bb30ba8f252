// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// runWherry runs a command of wherry that must end by itself.
func runWherry(t testing.TB, change func(*exec.Cmd), args ...string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, world(t).Wherry, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if change != nil {
		change(cmd)
	}
	code, err := exitCode(cmd.Run())
	if err != nil {
		t.Fatalf("wherry %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return Result{T: t, Line: "wherry " + strings.Join(args, " "), Out: out.String(), Err: errs.String(), Code: code}
}

// exits checks the exit code.
func (r Result) exits(code int) Result {
	r.T.Helper()
	if r.Code != code {
		r.T.Errorf("%s: exit code %d, want %d\n%s%s", r.Line, r.Code, code, r.Out, r.Err)
	}
	return r
}

// A server that cannot start says what is in the way and what to do, ends with a code of its own, and has changed nothing.
// ATTACK C18.
func TestBadServer(t *testing.T) {
	t.Parallel()
	world(t)
	serve := func(t *testing.T, dir string, change func(*exec.Cmd), args ...string) Result {
		return runWherry(t, change, append([]string{"server", "--data-dir", dir, "--secure-port", "0", "--kubelet-port", "0"}, args...)...)
	}
	untouched := func(t *testing.T, dir string) {
		t.Helper()
		for _, name := range []string{"etcd", "runtime", "kubeconfig", "pki"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s was made all the same", filepath.Join(dir, name))
			}
		}
	}
	t.Run("not root", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		nobody := func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		serve(t, dir, nobody).exits(10).Says("wherry needs root", "sudo")
		untouched(t, dir)
	})
	t.Run("port taken", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		serve(t, dir, nil, "--secure-port", port).exits(11).Says("port "+port, "taken", "(pid "+strconv.Itoa(os.Getpid())+")", "--secure-port")
		untouched(t, dir)
	})
	t.Run("kubelet port taken", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		serve(t, dir, nil, "--kubelet-port", port).exits(11).Says("port "+port, "taken", "--kubelet-port")
		untouched(t, dir)
	})
	t.Run("folder in use", func(t *testing.T) {
		other := run.server
		serve(t, other.DataDir, nil).exits(12).Says(other.DataDir, "in use", fmt.Sprintf("(pid %d)", other.PID()), "--data-dir")
		runWherry(t, nil, "purge", "--yes", "--data-dir", other.DataDir).exits(12).Says("in use")
		if text, err := other.Client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err != nil {
			t.Errorf("the server in the folder suffers: %v %s", err, text)
		}
	})
	t.Run("folder of a newer version", func(t *testing.T) {
		dir := t.TempDir()
		stamp := []byte(`{"format":99,"wherry":"v9.9.9","kubernetes":"v1.99.0"}` + "\n")
		if err := os.WriteFile(filepath.Join(dir, "version"), stamp, 0o644); err != nil {
			t.Fatal(err)
		}
		serve(t, dir, nil).exits(13).Says("v9.9.9", "format 99", "that version or a newer one")
		untouched(t, dir)
		if now, err := os.ReadFile(filepath.Join(dir, "version")); err != nil || !bytes.Equal(now, stamp) {
			t.Errorf("the version file is now %s (%v)", now, err)
		}
	})
	t.Run("disk full", func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
			t.Fatal(err)
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		serve(t, filepath.Join(dir, "d"), nil).exits(14).Says("free", "data folder", "--data-dir")
		untouched(t, filepath.Join(dir, "d"))
	})
	t.Run("folder cannot be made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		serve(t, filepath.Join(file, "d"), nil).exits(15).Says(file)
	})
	t.Run("kernel without overlayfs", func(t *testing.T) {
		t.Log("not simulated on a real kernel; internal/runtime tests the check and its words")
	})
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"wrong flag":     {[]string{"--no-such"}, []string{"unknown flag: --no-such", "--help"}},
		"wrong address":  {[]string{"--bind-address", "everywhere"}, []string{"--bind-address", `"everywhere" is not an IP address`}},
		"wrong port":     {[]string{"--secure-port", "99999"}, []string{"--secure-port", "99999 is not a port"}},
		"wrong name":     {[]string{"--node-name", "A_b"}, []string{"--node-name", "A_b"}},
		"wrong CIDR":     {[]string{"--pod-cidr", "10.1.2.3/24"}, []string{"--pod-cidr", "10.1.2.0/24"}},
		"too many words": {[]string{"now"}, []string{"now"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			serve(t, dir, nil, c.args...).exits(2).Says(c.want...)
			untouched(t, dir)
		})
	}
	t.Run("purge of what is not a data folder", func(t *testing.T) {
		dir := t.TempDir()
		keep := filepath.Join(dir, "precious")
		if err := os.WriteFile(keep, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		runWherry(t, nil, "purge", "--yes", "--data-dir", dir).exits(15).Says(dir, "nothing was removed")
		if _, err := os.Stat(keep); err != nil {
			t.Error(err)
		}
	})
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// RS-02: a disk that something else than a pod fills up while the server runs: the server goes on, and so does what runs; a pod that needs
// space is refused with the reason, and all is well again when there is space.
func TestBadDiskFillsUp(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=640m"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	home := t.TempDir()
	srv := &Server{World: world(t), DataDir: filepath.Join(dir, "x", "d"), base: filepath.Join(dir, "x"), home: home, log: filepath.Join(home, "log")}
	srv.opts.Args = []string{"--eviction-hard", "memory.available<100Mi"} // the pod is not to go before the disk is full
	srv.Kubeconfig = filepath.Join(srv.DataDir, "kubeconfig")
	if err := os.Mkdir(filepath.Dir(srv.DataDir), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := srv.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			select {
			case <-srv.Done():
				t.Logf("the server has ended: %v", srv.err)
			default:
			}
			t.Logf("the end of the server's log:\n%s", srv.LogTail(30))
		}
		if err := srv.Purge(ctx); err != nil {
			t.Error(err)
		}
	}()
	if err := srv.importImages(ctx); err != nil {
		t.Fatal(err)
	}
	k := inDefault(t, srv)
	before := k.up("metadata: {name: before}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	fill := filepath.Join(dir, "fill")
	f, err := os.Create(fill)
	k.must(err)
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not get full: %v", err)
	}
	k.must(f.Close())
	during := podOf(t, "metadata: {name: during}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	if _, err := k.TryCreate(during); !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "the disk of the data folder is full") {
		t.Errorf("a pod on a full disk: %v", err)
	}
	k.Get("before") // reading goes on
	k.must(os.Remove(fill))
	_, err = k.TryCreate(during)
	k.must(err)
	k.WaitReady("during")
	if now := k.Get("before"); facts(now) != facts(before) {
		t.Errorf("the pod that ran is %s; it was %s", facts(now), facts(before))
	}
	for _, name := range []string{"before", "during"} {
		pod := k.Get(name)
		k.Delete(name)
		k.WaitGone(pod)
	}
}

// Manifests that cannot be: wherry run says file, line and field, and what to do, before anything is made.
func TestBadManifest(t *testing.T) {
	t.Parallel()
	s := shared(t)
	big := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"malformed YAML": {"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n spec: {}\n", []string{"pod.yaml:4: malformed YAML"}},
		"tab":            {"apiVersion: v1\nkind: Pod\nmetadata:\n\tname: p\n", []string{"pod.yaml:4: malformed YAML"}},
		"unknown field":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i\n    comand: [x]\n", []string{"comand"}},
		"wrong type":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i\n    tty: often\n", []string{"tty"}},
		"number":         {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  activeDeadlineSeconds: soon\n  containers: [{name: c, image: i}]\n", []string{"activeDeadlineSeconds"}},
		"duplicate key":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nmetadata: {name: q}\nspec: {containers: [{name: c, image: i}]}\n", []string{"metadata"}},
		"no kind":        {"apiVersion: v1\nmetadata: {name: p}\n", []string{"kind"}},
		"unknown kind":   {"apiVersion: v1\nkind: Pood\nmetadata: {name: p}\n", []string{"Pood"}},
		"empty":          {"", []string{"no"}},
		"long name":      {"apiVersion: v1\nkind: Pod\nmetadata: {name: " + strings.Repeat("n", 254) + "}\nspec: {containers: [{name: c, image: i}]}\n", []string{"metadata.name", "253"}},
		"long container": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: " + strings.Repeat("n", 64) + ", image: i}]}\n", []string{"spec.containers[0].name", "63"}},
		"bad name":       {"apiVersion: v1\nkind: Pod\nmetadata: {name: My_Pod}\nspec: {containers: [{name: c, image: i}]}\n", []string{"metadata.name", "My_Pod"}},
		"no containers":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}\n", []string{"spec.containers"}},
		"too large": {"apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: c\n    image: i\n    env:\n" +
			strings.Repeat("    - {name: A, value: "+big+"}\n", 25), []string{"large"}},
		"no such volume": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}]}]}\n",
			[]string{"spec.containers[0].volumeMounts[0].name", `"v"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.With(t)
			path := filepath.Join(t.TempDir(), "pod.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			r := runWherry(t, nil, "run", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", path)
			if r.Code != 125 {
				t.Errorf("exit code %d, want 125", r.Code)
			}
			r.Says(c.want...)
			if pods := s.Kubectl("get", "pods", "-o", "name").Out; pods != "" {
				t.Errorf("something was made: %s", pods)
			}
		})
	}
	t.Run("through the API: over 1.5 MiB", func(t *testing.T) {
		s := s.With(t)
		var env strings.Builder
		for range 30 {
			fmt.Fprintf(&env, "    - {name: A, value: %s}\n", big)
		}
		r := s.KubectlIn("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i\n    env:\n"+env.String(), "create", "-f", "-")
		if r.Code == 0 {
			t.Error("a pod of 1.9 MB was taken")
		}
		r.Says("large")
	})
}

// Images that are not there, registries that are down: the run says so, ends when told to give up, and leaves nothing.
func TestBadImages(t *testing.T) {
	t.Parallel()
	s := shared(t)
	down := ClosedPort(t)
	s.TrustRegistry(t, down)
	registry := s.Registry(t)
	for name, c := range map[string]struct {
		image, policy string
		want          []string
	}{
		"never pulled":  {"wherry.test/none:1", "Never", []string{"ErrImageNeverPull", "wherry.test/none:1"}},
		"invalid name":  {"UPPER/Case:1", "IfNotPresent", []string{"InvalidImageName"}},
		"not there":     {registry.Host + "/none:1", "IfNotPresent", []string{"ErrImagePull", registry.Host + "/none:1", "not found"}},
		"registry down": {down + "/some:1", "IfNotPresent", []string{"ErrImagePull", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.With(t)
			path := filepath.Join(t.TempDir(), "pod.yaml")
			text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {generateName: bad-}\nspec: {containers: [{name: c, image: %q, imagePullPolicy: %s}]}\n", c.image, c.policy)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r := runWherry(t, nil, "run", "--fail-fast", "--rm", "--kubeconfig", s.Kubeconfig, "-n", s.Namespace, "-f", path).exits(125)
			r.Says(c.want...)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("giving up took %s", took)
			}
		})
	}
	if pods := s.Kubectl("get", "pods", "-o", "name").Out; pods != "" {
		t.Errorf("pods are left: %s", pods)
	}
}

// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// When containerd cannot go on, Done is closed and Err says why; this process lives, and can start again.
func TestContainerdGivesUp(t *testing.T) {
	dir := dataFolder(t)
	r := start(t, dir)
	if err := os.RemoveAll(r.dirs.cni); err != nil { // it watches this folder
		t.Fatal(err)
	}
	select {
	case <-r.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("Done is open still")
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "containerd failed") {
		t.Errorf("Err: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	importBox(t, start(t, dir))
}

// Purge works when containerd's database does not.
func TestPurgeOfDamagedFolder(t *testing.T) {
	dir := dataFolder(t)
	c := startChild(t, dir)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if err := os.Truncate(filepath.Join(dirsOf(dir).root, "io.containerd.metadata.v1.bolt", "meta.db"), 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("Start worked on a damaged folder")
	}
	if err := Purge(t.Context(), dir); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir)
}

// A folder cannot be purged, nor used twice, while a runtime runs on it.
func TestInUse(t *testing.T) {
	dir := dataFolder(t)
	c := startChild(t, dir)
	if _, err := Start(t.Context(), Config{DataDir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("Start: %v, want ErrInUse", err)
	}
	if err := Purge(t.Context(), dir); !errors.Is(err, ErrInUse) {
		t.Errorf("Purge: %v, want ErrInUse", err)
	}
	c.end()
	_ = c.cmd.Wait()
}

// The native snapshotter does without overlayfs.
func TestNativeSnapshotter(t *testing.T) {
	r, err := Start(t.Context(), Config{DataDir: dataFolder(t), Snapshotter: Native, NoSync: true, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	importBox(t, r)
	p := runPod(t, r)
	id := p.run("main", nil)
	if out, _ := p.exec(id, "echo", "hello"); out != "hello\n" {
		t.Errorf("exec: %q", out)
	}
	p.stop()
}

// PL-03: images come from registries as the hosts folder says: from a mirror, over plain HTTP, and it is read anew for
// every pull.
func TestMirror(t *testing.T) {
	r := start(t, dataFolder(t))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	push(t, strings.TrimPrefix(server.URL, "http://")+"/library/box:1")
	images := criapi.NewImageServiceClient(r.Conn())
	pull := func(ref string) (*criapi.PullImageResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return images.PullImage(ctx, &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: ref}})
	}
	if _, err := pull("mirrored.invalid/library/box:1"); err == nil {
		t.Error("pulled from a registry that does not exist")
	}
	hosts := filepath.Join(r.config.HostsDir, "mirrored.invalid")
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  skip_verify = true\n", server.URL, server.URL)
	if err := os.WriteFile(filepath.Join(hosts, "hosts.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := pull("mirrored.invalid/library/box:1")
	if err != nil {
		t.Fatal(err)
	}
	p := runPod(t, r)
	p.run("main", nil, func(c *criapi.ContainerConfig) { c.Image.Image = res.ImageRef })
	p.stop()

	// What was pulled can be taken elsewhere.
	var archive bytes.Buffer
	if err := r.Export(t.Context(), &archive, "mirrored.invalid/library/box:1"); err != nil || archive.Len() == 0 {
		t.Errorf("export of a pulled image: %v", err)
	}
	if _, err := pull("mirrored.invalid/library/nothere:1"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("an image that is not there: %v", err)
	}
}

// RS-05: a pull ends when its registry sends nothing for too long, whether it hangs at once or in the middle of a layer.
// ATTACK B16.
func TestRegistryHangs(t *testing.T) {
	dir := dataFolder(t)
	r, err := Start(t.Context(), Config{DataDir: dir, PullProgress: time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	over := make(chan struct{})
	good := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		layer := strings.Contains(req.URL.Path, "/half/blobs/sha256:") && req.Method == http.MethodGet
		if strings.Contains(req.URL.Path, "/hang/manifests/") || layer {
			if layer {
				w.Header().Set("Content-Length", "100000")
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-over:
			case <-req.Context().Done():
			}
			return
		}
		good.ServeHTTP(w, req)
	}))
	defer server.Close()
	defer close(over)
	host := strings.TrimPrefix(server.URL, "http://")
	push(t, host+"/half:1")
	hosts := filepath.Join(r.config.HostsDir, host)
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", server.URL, server.URL)
	if err := os.WriteFile(filepath.Join(hosts, "hosts.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/hang:1", "/half:1"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := criapi.NewImageServiceClient(r.Conn()).PullImage(ctx, &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: host + name}})
		if ctx.Err() != nil || status.Code(err) != codes.Canceled {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func push(t *testing.T, ref string) {
	t.Helper()
	data, err := boxArchive()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "box.tar")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img); err != nil {
		t.Fatal(err)
	}
}

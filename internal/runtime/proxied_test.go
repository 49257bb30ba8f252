// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/v2/contrib/snapshotservice"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/archive"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/containerd/v2/plugins/snapshots/overlay"
	"github.com/containerd/errdefs"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// remoteSnapshotter has some layers of its own, as one that mounts them from a registry does: of those it makes the
// snapshot itself, and says so.
type remoteSnapshotter struct {
	snapshots.Snapshotter
	has map[string][]byte // layers by digest

	mu   sync.Mutex
	told map[string]string // by layer, of which image it is
}

// Prepare implements snapshots.Snapshotter.
func (s *remoteSnapshotter) Prepare(ctx context.Context, key, parent string, opts ...snapshots.Opt) ([]mount.Mount, error) {
	mounts, err := s.Snapshotter.Prepare(ctx, key, parent, opts...)
	var info snapshots.Info
	for _, o := range opts {
		_ = o(&info)
	}
	target, layer := info.Labels[snapshots.LabelSnapshotRef], info.Labels["containerd.io/snapshot/cri.layer-digest"]
	if err != nil || target == "" {
		return mounts, err
	}
	s.mu.Lock()
	s.told[layer] = info.Labels["containerd.io/snapshot/cri.image-ref"]
	s.mu.Unlock()
	data, ok := s.has[layer]
	if !ok {
		return mounts, nil
	}
	err = mount.WithTempMount(ctx, mounts, func(root string) error {
		raw, err := compression.DecompressStream(bytes.NewReader(data))
		if err != nil {
			return err
		}
		_, err = archive.Apply(ctx, root, raw)
		return err
	})
	if err == nil {
		err = s.Commit(ctx, target, key, opts...)
	}
	if err != nil {
		return nil, err
	}
	return nil, errdefs.ErrAlreadyExists
}

// serveSnapshotter serves a snapshotter at a socket.
func serveSnapshotter(t *testing.T, s snapshots.Snapshotter) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	snapshotsapi.RegisterSnapshotsServer(server, snapshotservice.FromSnapshotter(s))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return socket
}

// boxOver is the tests' image with further layers.
func boxOver(t *testing.T, layers []v1.Layer) v1.Image {
	t.Helper()
	data, err := boxArchive()
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, layers...); err != nil {
		t.Fatal(err)
	}
	return img
}

// TestRemoteSnapshotter proves PL-03: with a snapshotter that is a program of its own and has layers, an image's other layers alone are downloaded; it is
// told which image they are of, and containers run from it.
func TestRemoteSnapshotter(t *testing.T) {
	dir := dataFolder(t)
	more, err := layered(t, 2, 1<<20, types.OCILayer).Layers()
	if err != nil {
		t.Fatal(err)
	}
	reg := serveImage(t, boxOver(t, more))
	inner, err := overlay.NewSnapshotter(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	m, err := v1.ParseManifest(bytes.NewReader(reg.manifest))
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	for _, l := range m.Layers {
		digests = append(digests, l.Digest.String())
	}
	own := digests[:len(digests)-1]
	s := &remoteSnapshotter{Snapshotter: inner, has: map[string][]byte{}, told: map[string]string{}}
	for _, d := range own {
		s.has[d] = reg.blobs[d]
	}
	r, err := Start(t.Context(), Config{DataDir: dir, Snapshotter: "lazy=" + serveSnapshotter(t, s), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		if _, err := pullFrom(t.Context(), r, reg); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range digests {
		if n := len(reg.requests("/blobs/" + d)); n != 0 == slices.Contains(own, d) {
			t.Errorf("layer %s was asked for %d times; the snapshotter has %v of %v", d, n, own, digests)
		}
		if s.told[d] != reg.ref() {
			t.Errorf("the snapshotter was told of layer %s that it is of %q", d, s.told[d])
		}
	}
	p := runPod(t, r)
	defer p.stop()
	id := p.run("main", nil, func(c *criapi.ContainerConfig) { c.Image.Image = reg.ref() })
	if got := p.status(id); got.State != criapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("a container from it: %v", got)
	}
	if err := r.Export(t.Context(), io.Discard, reg.ref()); err == nil || !strings.Contains(err.Error(), "snapshotter lazy") {
		t.Errorf("an image that is not here as a whole was written: %v", err)
	}
}

// TestSnapshotterAway proves PL-15: a start says what is wrong with a snapshotter's socket.
func TestSnapshotterAway(t *testing.T) {
	needRoot(t)
	for name, socket := range map[string]string{"is not there": filepath.Join(t.TempDir(), "none"), "does not answer": os.Args[0]} {
		dir := dataFolder(t)
		r, err := Start(t.Context(), Config{DataDir: dir, Snapshotter: "lazy=" + socket, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			_ = r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "snapshotter lazy "+name) || !strings.Contains(err.Error(), socket) {
			t.Errorf("%s: %v", socket, err)
		}
	}
}

func TestParseSnapshotter(t *testing.T) {
	for given, want := range map[string][2]string{
		"overlayfs": {"overlayfs"}, "native": {"native"}, "stargz=/run/s.sock": {"stargz", "/run/s.sock"}, "soci-2=unix:///run/s": {"soci-2", "/run/s"},
		"": {}, "zfs": {}, "stargz=": {}, "stargz=s.sock": {}, "=/run/s": {}, "native=/run/s": {}, "a/b=/run/s": {}, "A=/run/s": {},
	} {
		name, socket, err := ParseSnapshotter(given)
		if name != want[0] || socket != want[1] || (err == nil) != (name != "") {
			t.Errorf("%q: %q, %q, %v", given, name, socket, err)
		}
	}
}

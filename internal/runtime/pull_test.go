// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func pullFrom(ctx context.Context, r *Runtime, reg *testRegistry) (string, error) {
	got, err := criapi.NewImageServiceClient(r.Conn()).PullImage(ctx, &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: reg.ref()}})
	return got.GetImageRef(), err
}

// collectGarbage has containerd remove what nobody keeps, at once.
func collectGarbage(t *testing.T, r *Runtime) {
	t.Helper()
	ctx := namespaces.WithNamespace(t.Context(), Namespace)
	store := r.client.LeasesService()
	l, err := store.Create(ctx, leases.WithRandomID())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(ctx, l, leases.SynchronousDelete); err != nil {
		t.Fatal(err)
	}
}

// halfFetched are the parts of images of which something has come.
func halfFetched(t *testing.T, r *Runtime) (refs []string) {
	t.Helper()
	all, err := r.client.ContentStore().ListStatuses(namespaces.WithNamespace(t.Context(), Namespace))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		refs = append(refs, s.Ref)
	}
	return refs
}

// underWay says whether a lease is there that is to keep what a pull under way brings, for a day; what a failed one leaves has one for an hour.
func underWay(t *testing.T, r *Runtime) bool {
	t.Helper()
	all, err := r.client.LeasesService().List(namespaces.WithNamespace(t.Context(), Namespace))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(l leases.Lease) bool {
		until, err := time.Parse(time.RFC3339, l.Labels["containerd.io/gc.expire"])
		return l.Labels["wherry.dev/pull"] != "" && err == nil && time.Until(until) > 2*time.Hour
	})
}

func pullLeases(t *testing.T, r *Runtime) int {
	t.Helper()
	all, err := r.client.LeasesService().List(namespaces.WithNamespace(t.Context(), Namespace))
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(l leases.Lease) bool { return l.Labels["wherry.dev/pull"] == "" })
	return len(all)
}

// TestSecondPull proves PL-03: an image of which all is here is asked for once at its registry, and nothing else; another one of the same name is
// fetched; and it has all its names.
func TestSecondPull(t *testing.T) {
	r := start(t, dataFolder(t))
	reg := serveImage(t, layered(t, 3, 1<<20, types.OCILayer))
	first, err := pullFrom(t.Context(), r, reg)
	if err != nil {
		t.Fatal(err)
	}
	images := criapi.NewImageServiceClient(r.Conn())
	for _, name := range []string{reg.ref(), strings.TrimSuffix(reg.ref(), ":1") + "@" + reg.digest.String(), first} {
		got, err := images.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: name}})
		if err != nil || got.GetImage().GetId() != first || len(got.GetImage().GetRepoTags()) != 1 || len(got.GetImage().GetRepoDigests()) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	reg.asked = nil
	second, err := pullFrom(t.Context(), r, reg)
	if want := (asked{http.MethodHead, "/v2/app/manifests/1", ""}); err != nil || second != first || !slices.Equal(reg.asked, []asked{want}) {
		t.Errorf("%q after %q, %v; it asked for %v", second, first, err, reg.asked)
	}
	other := serveImage(t, layered(t, 2, 1<<20, types.OCILayer))
	reg.manifest, reg.digest, reg.blobs = other.manifest, other.digest, other.blobs
	third, err := pullFrom(t.Context(), r, reg)
	if err != nil || third == first {
		t.Errorf("another image was not fetched: %q, %v", third, err)
	}
	if n := pullLeases(t, r); n != 0 {
		t.Errorf("%d leases are left", n)
	}
}

// TestPullZstd proves PL-03: layers may be compressed by zstd.
func TestPullZstd(t *testing.T) {
	r := start(t, dataFolder(t))
	if _, err := pullFrom(t.Context(), r, serveImage(t, layered(t, 2, 1<<20, types.OCILayerZStd))); err != nil {
		t.Fatal(err)
	}
}

// oneLayer serves an image of one layer, whose digest it returns.
func oneLayer(t *testing.T) (*testRegistry, string, []byte) {
	t.Helper()
	img := layered(t, 1, 4<<20, types.OCILayer)
	reg := serveImage(t, img)
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	d, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return reg, d.String(), reg.blobs[d.String()]
}

// goesOn checks that a layer was fetched from where it was left, by the registry's account.
func goesOn(t *testing.T, reg *testRegistry, layer string, size int) {
	t.Helper()
	requests := reg.requests("/blobs/" + layer)
	last := requests[len(requests)-1].ranges
	// What was on its way when the connection broke may be lost, but not all of it.
	if !strings.HasPrefix(last, "bytes=") || strings.HasPrefix(last, "bytes=0-") || reg.bytesOf(layer) >= size+size/2 {
		t.Errorf("of a layer of %d bytes, %d were sent; %v", size, reg.bytesOf(layer), requests)
	}
}

// TestPullGoesOn proves RS-05: a connection that breaks in the middle of a layer costs what was on its way. If the registry is away then, the
// pull fails, and the next one goes on from what has come, if nobody wants the room; as it does after another pull fails at once.
func TestPullGoesOn(t *testing.T) {
	dir := dataFolder(t)
	for name, away := range map[string]bool{"breaks": false, "is away": true} {
		t.Run(name, func(t *testing.T) {
			r := start(t, dir)
			reg, layer, data := oneLayer(t)
			var once sync.Once
			reg.set(func(w http.ResponseWriter, q *http.Request, blob []byte) (done bool) {
				if !strings.HasSuffix(q.URL.Path, layer) {
					return false
				}
				once.Do(func() { breakOff(w, blob, len(blob)*3/4) })
				if away {
					http.Error(w, "away", http.StatusNotFound)
				}
				return away
			})
			_, err := pullFrom(t.Context(), r, reg)
			if away {
				if err == nil {
					t.Fatal("it has pulled from a registry that is away")
				}
				if _, err := pullFrom(t.Context(), r, reg); err == nil {
					t.Fatal("it has pulled from a registry that is away")
				}
				collectGarbage(t, r)
				if all, err := r.Transfers(t.Context()); err != nil || len(all) > 0 {
					t.Errorf("what waits is shown as coming: %v, %v", all, err)
				}
				reg.set(nil)
				_, err = pullFrom(t.Context(), r, reg)
			}
			if err != nil {
				t.Fatal(err)
			}
			goesOn(t, reg, layer, len(data))
			if n := pullLeases(t, r); n != 0 {
				t.Errorf("%d leases are left", n)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// pullingEnv makes a test binary run TestPullingProcess: data folder and image.
const pullingEnv = "WHERRY_RUNTIME_TEST_PULL"

// TestPullingProcess is the body of another process, which pulls an image.
func TestPullingProcess(t *testing.T) {
	dir, ref, ok := strings.Cut(os.Getenv(pullingEnv), ",")
	if !ok {
		t.Skip("only as a process of another test")
	}
	r := start(t, dir)
	_, err := criapi.NewImageServiceClient(r.Conn()).PullImage(t.Context(), &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: ref}})
	t.Fatalf("the pull has ended: %v", err)
}

// TestPullGoesOnAfterStop proves RS-05: a server that is stopped or killed in the middle of a layer goes on from there when it is started again.
func TestPullGoesOnAfterStop(t *testing.T) {
	for _, how := range []string{"stopped", "killed", "its users stopped first"} {
		killed := how == "killed"
		t.Run(how, func(t *testing.T) {
			dir := dataFolder(t)
			reg, layer, data := oneLayer(t)
			half, over := make(chan struct{}), make(chan struct{})
			defer close(over)
			reg.set(func(w http.ResponseWriter, q *http.Request, blob []byte) bool {
				if !strings.HasSuffix(q.URL.Path, layer) {
					return false
				}
				w.Header().Set("Content-Length", "4000000")
				_, _ = w.Write(blob[:len(blob)*3/4])
				_ = http.NewResponseController(w).Flush()
				close(half)
				select {
				case <-over:
				case <-q.Context().Done():
				}
				return true
			})
			if killed {
				cmd := exec.Command(os.Args[0], "-test.run=^TestPullingProcess$", "-test.v")
				cmd.Env = append(os.Environ(), pullingEnv+"="+dir+","+reg.ref())
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				<-half
				awaitPart(t, dir, len(data)/2)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			} else {
				r, err := Start(t.Context(), Config{DataDir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				wanted, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _, err := pullFrom(wanted, r, reg); ended <- err }()
				<-half
				awaitPart(t, dir, len(data)/2)
				if how != "stopped" {
					r.Leave()
					cancel()
					for underWay(t, r) {
						time.Sleep(5 * time.Millisecond)
					}
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if err := <-ended; err == nil {
					t.Fatal("the pull has ended well")
				}
			}
			reg.set(nil)
			r := start(t, dir)
			collectGarbage(t, r)
			if _, err := pullFrom(t.Context(), r, reg); err != nil {
				t.Fatal(err)
			}
			goesOn(t, reg, layer, len(data))
			if n := pullLeases(t, r); n != 0 {
				t.Errorf("%d leases are left", n)
			}
		})
	}
}

// awaitPart waits until some bytes of a layer are in the content store of a data folder.
func awaitPart(t *testing.T, dir string, size int) {
	t.Helper()
	eventually(t, "half of the layer is on the disk", func() bool {
		found, err := filepath.Glob(filepath.Join(dirsOf(dir).root, "io.containerd.content.v1.content", "ingest", "*", "data"))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found, func(f string) bool {
			i, err := os.Stat(f)
			return err == nil && int(i.Size()) >= size
		})
	})
}

// TestPullIsNotKept proves RS-02: what a pull has brought that was called off, or that is not what it should be, takes no room, and stands in
// nobody's way.
func TestPullIsNotKept(t *testing.T) {
	r := start(t, dataFolder(t))
	reg, layer, data := oneLayer(t)
	ctx, callOff := context.WithCancel(t.Context())
	reg.set(func(w http.ResponseWriter, q *http.Request, blob []byte) bool {
		if !strings.HasSuffix(q.URL.Path, layer) {
			return false
		}
		w.Header().Set("Content-Length", "4000000")
		_, _ = w.Write(blob[:len(blob)*3/4])
		_ = http.NewResponseController(w).Flush()
		awaitPart(t, r.config.DataDir, len(data)/2)
		callOff()
		<-q.Context().Done()
		return true
	})
	if _, err := pullFrom(ctx, r, reg); err == nil {
		t.Error("a pull that was called off has ended well")
	}
	eventually(t, "nothing is left of a pull that was called off", func() bool { return len(halfFetched(t, r)) == 0 && pullLeases(t, r) == 0 })

	reg.set(func(w http.ResponseWriter, q *http.Request, blob []byte) bool {
		if !strings.HasSuffix(q.URL.Path, layer) {
			return false
		}
		wrong := slices.Clone(blob)
		wrong[len(wrong)/2] ^= 1
		_, _ = w.Write(wrong)
		return true
	})
	if _, err := pullFrom(t.Context(), r, reg); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("a wrong layer: %v", err)
	}
	reg.set(nil)
	if _, err := pullFrom(t.Context(), r, reg); err != nil {
		t.Errorf("after a wrong layer: %v", err)
	}
}

// TestHangingLayers proves RS-05: a registry that hangs in the middle of layers, however many, holds up no other registry's pull. (ATTACK B16)
func TestHangingLayers(t *testing.T) {
	r := start(t, dataFolder(t))
	bad, good := serveImage(t, layered(t, 5, 1<<20, types.OCILayer)), serveImage(t, layered(t, 4, 1<<20, types.OCILayer))
	config, err := v1.ParseManifest(strings.NewReader(string(bad.manifest)))
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan struct{}, 5)
	bad.set(func(_ http.ResponseWriter, q *http.Request, _ []byte) bool {
		if strings.HasSuffix(q.URL.Path, config.Config.Digest.String()) {
			return false
		}
		hung <- struct{}{}
		<-q.Context().Done()
		return true
	})
	ctx, callOff := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := pullFrom(ctx, r, bad); ended <- err }()
	for range 3 {
		<-hung
	}
	within, cancel := context.WithTimeout(t.Context(), 30*time.Second) // the other one waits for a minute
	defer cancel()
	if _, err := pullFrom(within, r, good); err != nil {
		t.Errorf("a pull beside one that hangs: %v", err)
	}
	callOff()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("the one that hung: %v", err)
	}
}

// TestDrippingRegistry proves RS-05: a registry that sends a byte now and then is given up, too, and whoever wants the same layers of another one has
// them then.
func TestDrippingRegistry(t *testing.T) {
	dir := dataFolder(t)
	r, err := Start(t.Context(), Config{DataDir: dir, PullProgress: 500 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	img := layered(t, 3, 1<<20, types.OCILayer)
	bad, good := serveImage(t, img), serveImage(t, img)
	config, err := v1.ParseManifest(strings.NewReader(string(bad.manifest)))
	if err != nil {
		t.Fatal(err)
	}
	drips := make(chan struct{}, 3)
	bad.set(func(w http.ResponseWriter, q *http.Request, blob []byte) bool {
		if strings.HasSuffix(q.URL.Path, config.Config.Digest.String()) {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(blob)))
		drips <- struct{}{}
		drip := time.NewTicker(100 * time.Millisecond)
		defer drip.Stop()
		for i := range blob {
			_, _ = w.Write(blob[i : i+1])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-drip.C:
			case <-q.Context().Done():
				return true
			}
		}
		return true
	})
	ended := make(chan error, 1)
	go func() { _, err := pullFrom(t.Context(), r, bad); ended <- err }()
	for range 3 {
		<-drips
	}
	if _, err := pullFrom(t.Context(), r, good); err != nil {
		t.Errorf("a pull of the same layers elsewhere: %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the registry sent ") || !strings.Contains(err.Error(), " bytes in ") {
		t.Errorf("the one that dripped: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// testRegistry is a registry of one image, "app:1", on loopback. It serves ranges, as registries do; it can be slow or
// faulty, and tells what it was asked for.
type testRegistry struct {
	*httptest.Server
	manifest []byte
	kind     string
	digest   v1.Hash
	blobs    map[string][]byte // by digest

	mu    sync.Mutex
	rate  int // bytes a second of each answer; 0: all that goes
	asked []asked
	sent  map[string]int // bytes of each blob
	// fault, if set, is called before a blob is sent, and may do it itself, say half.
	fault func(w http.ResponseWriter, q *http.Request, blob []byte) (done bool)
}

// asked is a request.
type asked struct{ method, path, ranges string }

// serveImage serves an image.
func serveImage(tb testing.TB, img v1.Image) *testRegistry {
	tb.Helper()
	r := &testRegistry{blobs: map[string][]byte{}, sent: map[string]int{}}
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	var err error
	r.manifest, err = img.RawManifest()
	must(err)
	r.digest, err = img.Digest()
	must(err)
	kind, err := img.MediaType()
	must(err)
	r.kind = string(kind)
	config, err := img.RawConfigFile()
	must(err)
	name, err := img.ConfigName()
	must(err)
	r.blobs[name.String()] = config
	layers, err := img.Layers()
	must(err)
	for _, l := range layers {
		d, err := l.Digest()
		must(err)
		rc, err := l.Compressed()
		must(err)
		r.blobs[d.String()], err = io.ReadAll(rc)
		must(err)
	}
	r.Server = httptest.NewServer(r)
	tb.Cleanup(r.Close)
	return r
}

// ref is the image's name.
func (r *testRegistry) ref() string { return strings.TrimPrefix(r.URL, "http://") + "/app:1" }

// ServeHTTP implements http.Handler.
func (r *testRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	r.asked = append(r.asked, asked{q.Method, q.URL.Path, q.Header.Get("Range")})
	rate, fault := r.rate, r.fault
	r.mu.Unlock()
	last := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
	if strings.Contains(q.URL.Path, "/manifests/") && (last == "1" || last == r.digest.String()) {
		w.Header().Set("Content-Type", r.kind)
		w.Header().Set("Docker-Content-Digest", r.digest.String())
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(r.manifest))
		return
	}
	blob, ok := r.blobs[last]
	if !ok {
		http.NotFound(w, q)
		return
	}
	out := &countingWriter{w, r, last, rate, time.Now(), 0}
	if fault != nil && fault(out, q, blob) {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(out, q, "", time.Time{}, bytes.NewReader(blob))
}

// requests are those whose path has a part.
func (r *testRegistry) requests(part string) []asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.asked), func(a asked) bool { return !strings.Contains(a.path, part) })
}

// set changes what the registry does.
func (r *testRegistry) set(fault func(http.ResponseWriter, *http.Request, []byte) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = fault
}

// bytesOf is how much of a blob was sent, again and again.
func (r *testRegistry) bytesOf(digest string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[digest]
}

// breakOff sends the first bytes of a blob and breaks the connection.
func breakOff(w http.ResponseWriter, blob []byte, after int) {
	w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	_, _ = w.Write(blob[:after])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// countingWriter takes down how much of a blob is sent, at most at a rate.
type countingWriter struct {
	http.ResponseWriter
	r     *testRegistry
	blob  string
	rate  int
	begin time.Time
	n     int
}

// Unwrap is for http.ResponseController.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *countingWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		m, err := w.ResponseWriter.Write(p[:min(len(p), 64<<10)])
		n += m
		w.n += m
		w.r.mu.Lock()
		w.r.sent[w.blob] += m
		w.r.mu.Unlock()
		if err != nil {
			return n, err
		}
		if w.rate > 0 {
			time.Sleep(time.Until(w.begin.Add(time.Duration(w.n) * time.Second / time.Duration(w.rate))))
		}
		p = p[m:]
	}
	return n, nil
}

// layered makes an image of n layers of about size bytes compressed, which half of their contents compress to.
func layered(tb testing.TB, n, size int, kind types.MediaType) v1.Image {
	tb.Helper()
	random := rand.NewChaCha8(sha256.Sum256([]byte(fmt.Sprint(tb.Name(), n)))) // no two tests have a layer in common
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: goruntime.GOARCH,
		RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		tb.Fatal(err)
	}
	img = mutate.MediaType(img, types.OCIManifestSchema1)
	for i := range n {
		noise := make([]byte, size)
		_, _ = random.Read(noise)
		data := make([]byte, 0, 2*size)
		for rest := noise; len(rest) > 0; { // incompressible and compressible stretches, as programs have
			part := rest[:min(len(rest), 4096)]
			data = append(append(data, part...), bytes.Repeat(part[:1], len(part))...)
			rest = rest[len(part):]
		}
		var raw bytes.Buffer
		w := tar.NewWriter(&raw)
		for f := range 20 {
			part := data[f*len(data)/20 : (f+1)*len(data)/20]
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("layer%d/file%d", i, f), Mode: 0o644,
				Size: int64(len(part))}); err != nil {
				tb.Fatal(err)
			}
			_, _ = w.Write(part)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		diff, _, err := v1.SHA256(bytes.NewReader(raw.Bytes()))
		if err != nil {
			tb.Fatal(err)
		}
		layer := packed{static.NewLayer(pack(tb, raw.Bytes(), kind), kind), diff}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			tb.Fatal(err)
		}
	}
	return img
}

// packed is a layer whose compressed contents are given.
type packed struct {
	v1.Layer
	diff v1.Hash
}

// DiffID implements v1.Layer.
func (p packed) DiffID() (v1.Hash, error) { return p.diff, nil }

func pack(tb testing.TB, raw []byte, kind types.MediaType) []byte {
	tb.Helper()
	if kind == types.OCIUncompressedLayer {
		return raw
	}
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if kind == types.OCILayerZStd {
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := w.Write(raw); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/ociimage"
)

// measured is a runtime that is purged at the end of a benchmark, and its data folder.
func measured(b *testing.B) (*Runtime, string) {
	b.Helper()
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	dir, err := os.MkdirTemp("", "wherry-runtime-")
	if err != nil {
		b.Fatal(err)
	}
	r, err := Start(b.Context(), Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(r.Close(), Purge(context.Background(), dir), os.RemoveAll(dir)); err != nil {
			b.Error(err)
		}
	})
	return r, dir
}

// BenchmarkPull measures pulls from a registry on loopback: of an image of which all is there, and of 8 layers of 20 MB
// from one that gives each connection 25 MB/s, or all it can.
func BenchmarkPull(b *testing.B) {
	r, _ := measured(b)
	images := criapi.NewImageServiceClient(r.Conn())
	reg := serveImage(b, layered(b, 8, 20<<20, types.OCILayer))
	spec := &criapi.ImageSpec{Image: reg.ref()}
	pull := func(b *testing.B) {
		if _, err := images.PullImage(b.Context(), &criapi.PullImageRequest{Image: spec}); err != nil {
			b.Fatal(err)
		}
	}
	for _, rate := range []int{0, 25_000_000} {
		b.Run(fmt.Sprintf("first/rate=%d", rate), func(b *testing.B) {
			reg.rate = rate
			for b.Loop() {
				pull(b)
				b.StopTimer()
				if _, err := images.RemoveImage(b.Context(), &criapi.RemoveImageRequest{Image: spec}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
	b.Run("second", func(b *testing.B) {
		reg.rate = 0
		pull(b)
		reg.asked = nil
		n := 0
		for b.Loop() {
			pull(b)
			n++
		}
		b.ReportMetric(float64(len(reg.asked))/float64(n), "requests/op")
	})
}

// BenchmarkImport measures the import of an archive of 8 layers of 40 MB, as docker save writes it, against copying the
// same file to the same disk.
func BenchmarkImport(b *testing.B) {
	r, dir := measured(b)
	for kind, media := range map[string]types.MediaType{"gzip": types.OCILayer, "raw": types.OCIUncompressedLayer} {
		path := filepath.Join(dir, kind+".tar")
		size := writeArchive(b, path, layered(b, 8, 20<<20, media))
		b.Run("copy/"+kind, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				copyToDisk(b, path, path+".copy")
			}
		})
		b.Run("import/"+kind, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				names, err := r.Import(b.Context(), f)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				f.Close()
				_, err = criapi.NewImageServiceClient(r.Conn()).RemoveImage(b.Context(),
					&criapi.RemoveImageRequest{Image: &criapi.ImageSpec{Image: names[0]}})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func writeArchive(b *testing.B, path string, img v1.Image) (size int64) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := ociimage.WriteTar(f, img, "bench.test/app:1"); err != nil {
		b.Fatal(err)
	}
	i, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return i.Size()
}

// copyToDisk copies a file, and has it on the disk when it returns, as an image is when it is imported.
func copyToDisk(b *testing.B, from, to string) {
	b.Helper()
	in, err := os.Open(from)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	_, err = io.Copy(struct{ io.Writer }{out}, in)
	if err := errors.Join(err, out.Sync()); err != nil {
		b.Fatal(err)
	}
}

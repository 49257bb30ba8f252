// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// BenchmarkPull measures pulls from a registry on loopback: of an image of which all is there, and of 8 layers of 20 MB
// from one that gives each connection 25 MB/s, or all it can.
func BenchmarkPull(b *testing.B) {
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

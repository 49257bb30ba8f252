// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// bomb is an image service whose pulls fill the disk and go on for ever.
type bomb struct {
	runtimeapi.ImageServiceClient
	free  *atomic.Int64
	pulls atomic.Int32
}

func (b *bomb) PullImage(ctx context.Context, _ *runtimeapi.PullImageRequest, _ ...grpc.CallOption) (*runtimeapi.PullImageResponse, error) {
	b.pulls.Add(1)
	b.free.Store(leastRoom - 1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRoomy proves RS-02: an image that unpacks to the disk's end is given up in time, in words for the user, and not begun while there is
// no room. Old code: the pull went on until the disk was full.
// ATTACK B17.
func TestRoomy(t *testing.T) {
	var free atomic.Int64
	free.Store(100 << 30)
	b := &bomb{free: &free}
	images := Roomy(b, func() (int64, int64, error) { return free.Load(), 1 << 30, nil })
	ref, err := imagename.Parse("example.com/bomb:1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		_, err = Fetch(t.Context(), images, &runtimeapi.PullImageRequest{}, ref, nil)
		if err == nil || !strings.Contains(err.Error(), "no space left on the node for image example.com/bomb:1") {
			t.Errorf("pull %d: %v", i, err)
		}
	}
	if n := b.pulls.Load(); n != 1 {
		t.Errorf("%d pulls were begun", n)
	}
	for _, row := range []struct {
		free, capacity int64
		short          bool
	}{
		{127 << 20, 1 << 30, true}, {129 << 20, 1 << 30, false},
		{999 << 20, 20 << 30, true}, {1025 << 20, 20 << 30, false},
		{2047 << 20, 1 << 50, true}, {2049 << 20, 1 << 50, false},
	} {
		if tooShort(row.free, row.capacity) != row.short {
			t.Errorf("%d MiB of %d MiB: short %t", row.free>>20, row.capacity>>20, !row.short)
		}
	}
}

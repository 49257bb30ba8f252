// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// leastRoom is what a pull must leave of a disk at least.
	leastRoom = 128 << 20
	// mostRoom is what a pull has to leave of any disk at most.
	mostRoom = 2 << 30
	// roomShare of a disk is left by pulls: one in twenty, as the node begins to evict there.
	roomShare = 20
	// lookEvery is how often the disk is looked at during a pull: a small image can unpack to a gigabyte in two
	// seconds, and nothing says beforehand how large it gets.
	lookEvery = 100 * time.Millisecond
)

// Disk says how many bytes of the images' disk are free, and how many there are.
type Disk func() (free, capacity int64, err error)

// Roomy is an image service whose pulls fail when they leave too little of the disk, before they begin or on the way
// (RS-02). What they have brought is removed by the runtime.
func Roomy(images runtimeapi.ImageServiceClient, disk Disk) runtimeapi.ImageServiceClient {
	return roomy{images, disk}
}

type roomy struct {
	runtimeapi.ImageServiceClient
	disk Disk
}

// PullImage implements runtimeapi.ImageServiceClient.
func (r roomy) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest,
	opts ...grpc.CallOption) (*runtimeapi.PullImageResponse, error) {
	if r.short() {
		return nil, noRoom()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	defer func() { cancel(nil); <-over }()
	go func() {
		defer close(over)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if r.short() {
				cancel(errShort)
				return
			}
		}
	}()
	out, err := r.ImageServiceClient.PullImage(ctx, req, opts...)
	if err != nil && errors.Is(context.Cause(ctx), errShort) {
		return nil, noRoom()
	}
	return out, err
}

func (r roomy) short() bool {
	free, capacity, err := r.disk()
	return err == nil && tooShort(free, capacity)
}

// tooShort reports whether a disk has less than pulls may leave. (Pure.)
func tooShort(free, capacity int64) bool {
	return free < max(leastRoom, min(mostRoom, capacity/roomShare))
}

var errShort = errors.New("the disk is nearly full")

// noRoom has the kernel's words, by which explain knows it.
func noRoom() error {
	return status.Error(codes.ResourceExhausted,
		"no space left on device for the image: the rest of the disk is kept for running pods")
}

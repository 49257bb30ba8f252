// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pinnedLabel makes containerd's CRI (1.7 and later) say of an image that it is pinned: nobody's garbage.
const pinnedLabel, pinnedValue = "io.cri-containerd.pinned", "pinned"

// toolboxCarrier brings the debug image to a containerd that somebody else runs, when it is first asked for. Whoever
// has never debugged a pod there finds nothing of ours among the images.
type toolboxCarrier struct {
	snapshotter string

	mu sync.Mutex
	id string // of the image that was brought, or was there; "" before that
}

// bringTime bounds the import; noticeTime how long the CRI may take to notice the image.
const (
	bringTime  = time.Minute
	noticeTime = 10 * time.Second
	noticePoll = 10 * time.Millisecond
)

// status answers the CRI's question for the image: call asks, and fills in reply.
func (t *toolboxCarrier) status(ctx context.Context, c *containerd.Client, reply *criapi.ImageStatusResponse,
	call func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := call(); err != nil {
		return err
	}
	if t.id != "" && reply.GetImage().GetId() == t.id {
		return nil
	}
	id, err := t.bring(ctx, c)
	if err != nil {
		return err
	}
	// The CRI hears of the image by an event of containerd's, and has none of its own for when it has looked.
	late := time.After(noticeTime)
	for reply.GetImage().GetId() != id {
		select {
		case <-time.After(noticePoll):
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return errors.New("the debug image was imported, but containerd's CRI does not list it")
		}
		if err := call(); err != nil {
			return err
		}
	}
	t.id = id
	return nil
}

// bring sees to it that the image is there, and returns the id that the CRI gives it. It is not called off half-way.
func (t *toolboxCarrier) bring(ctx context.Context, c *containerd.Client) (string, error) {
	image, err := toolboxImage()
	if err != nil {
		return "", err
	}
	image.labels = map[string]string{pinnedLabel: pinnedValue}
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.WithoutCancel(ctx), Namespace), bringTime)
	defer cancel()
	if err := image.ensure(ctx, c, t.snapshotter); err != nil {
		return "", err
	}
	img, err := c.GetImage(ctx, toolboxRef)
	if err != nil {
		return "", fmt.Errorf("the debug image: %w", err)
	}
	config, err := img.Config(ctx)
	if err != nil {
		return "", fmt.Errorf("the debug image: %w", err)
	}
	return config.Digest.String(), nil
}

// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"io/fs"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// pause is the image of the process that holds a pod's namespaces. It comes with the binary, not from a registry.
type pause struct {
	ref  string
	open func() (fs.File, error)
}

// pauseImage returns the bundled image. Its name has the archive's hash, so a newer wherry brings its own.
func pauseImage() (pause, error) {
	open, hash, err := bundle.Embedded().PauseImage()
	if err != nil {
		return pause{}, err
	}
	return pause{ref: "wherry.dev/pause:" + hash, open: open}, nil
}

// name is what the CRI calls it.
func (p pause) name() string { return p.ref }

// ensure imports the image if it is not there, unpacked.
func (p pause) ensure(ctx context.Context, c *containerd.Client, snapshotter string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	if img, err := c.GetImage(ctx, p.ref); err == nil {
		if ok, err := img.IsUnpacked(ctx, snapshotter); err == nil && ok {
			return nil
		}
	}
	img, err := bring(ctx, c, p.open, images.Image{Name: p.ref})
	if err != nil {
		return fmt.Errorf("import the pause image: %w", err)
	}
	if err := containerd.NewImage(c, img).Unpack(ctx, snapshotter); err != nil {
		return fmt.Errorf("unpack the pause image: %w", err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"

	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/runtime/bundle"
)

// toolboxRef is the name under which the CRI looks for the debug image.
const toolboxRef = debugask.ToolboxImage + ":latest"

// archiveLabel holds the hash of the archive an image came from.
const archiveLabel = "wherry.dev/archive"

// toolbox is the image that `wherry debug` runs. It comes with the binary, not from a registry.
type toolbox struct {
	hash   string
	open   func() (fs.File, error)
	labels map[string]string // that the image gets besides
}

// toolboxImage returns the bundled image.
func toolboxImage() (toolbox, error) {
	open, hash, err := bundle.Embedded().ToolboxImage()
	return toolbox{hash: hash, open: open}, err
}

// name is what the CRI calls it.
func (t toolbox) name() string { return toolboxRef }

// ensure imports the image if it is not there, unpacked, or is another wherry's. The CRI, which is to be started after
// this, pins it, as it is named in its settings.
func (t toolbox) ensure(ctx context.Context, c *containerd.Client, snapshotter string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	old, err := c.GetImage(ctx, toolboxRef)
	if err == nil && old.Labels()[archiveLabel] == t.hash {
		if ok, err := old.IsUnpacked(ctx, snapshotter); err == nil && ok {
			return nil
		}
	}
	// Without the CRI's labels, so that it takes the image for a new one and notes its id.
	labels := map[string]string{archiveLabel: t.hash}
	maps.Copy(labels, t.labels)
	img, err := bring(ctx, c, t.open, images.Image{Name: toolboxRef, Labels: labels})
	if err != nil {
		return fmt.Errorf("import the debug image: %w", err)
	}
	if err := containerd.NewImage(c, img).Unpack(ctx, snapshotter); err != nil {
		return fmt.Errorf("unpack the debug image: %w", err)
	}
	if old == nil || old.Target().Digest == img.Target.Digest {
		return nil
	}
	if err := forget(ctx, c.ImageService(), old.Target().Digest.String()); err != nil {
		return fmt.Errorf("remove the previous debug image: %w", err)
	}
	return nil
}

// forget removes the names that the CRI gave an image, its ids, which would stay pinned, unless it has another name.
// Containers that run from it keep their files.
func forget(ctx context.Context, store images.Store, digest string) error {
	list, err := store.List(ctx, "target.digest=="+digest)
	if err != nil {
		return err
	}
	isID := func(img images.Image) bool { return strings.HasPrefix(img.Name, "sha256:") }
	var errs []error
	for _, img := range list {
		if !slices.ContainsFunc(list, func(i images.Image) bool { return !isID(i) }) {
			errs = append(errs, store.Delete(ctx, img.Name))
		}
	}
	return errors.Join(errs...)
}

// bring imports a bundled archive with one image, names it as asked, in place of what had that name, and returns it.
// The name in the archive is not given to anything: a CRI that runs would take that for an image too.
func bring(ctx context.Context, c *containerd.Client, open func() (fs.File, error),
	as images.Image) (images.Image, error) {
	ctx, release, err := c.WithLease(ctx) // nothing else keeps it from being garbage before the image has its name
	if err != nil {
		return as, err
	}
	defer func() { _ = release(context.WithoutCancel(ctx)) }()
	file, err := open()
	if err != nil {
		return as, err
	}
	defer file.Close()
	store := c.ContentStore()
	desc, err := archive.ImportIndex(ctx, store, file)
	if err != nil {
		return as, err
	}
	text, err := content.ReadBlob(ctx, store, desc)
	if err != nil {
		return as, err
	}
	var index struct{ Manifests []json.RawMessage }
	if err := json.Unmarshal(text, &index); err != nil {
		return as, fmt.Errorf("the archive's index: %w", err)
	}
	if len(index.Manifests) != 1 {
		return as, fmt.Errorf("the archive has %d images, want 1", len(index.Manifests))
	}
	if err := json.Unmarshal(index.Manifests[0], &as.Target); err != nil {
		return as, fmt.Errorf("the archive's index: %w", err)
	}
	if err := images.Walk(ctx, images.SetChildrenLabels(store, images.ChildrenHandler(store)), as.Target); err != nil {
		return as, err
	}
	img, err := c.ImageService().Create(ctx, as)
	if errdefs.IsAlreadyExists(err) {
		img, err = c.ImageService().Update(ctx, as)
	}
	return img, err
}

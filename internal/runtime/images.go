// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
)

// imageUpdater is the part of the CRI's image service that makes it look at an image again.
type imageUpdater interface {
	UpdateImage(ctx context.Context, ref string) error
}

func updaterOf(d *daemon) (imageUpdater, error) {
	return instance[imageUpdater](d, plugins.CRIServicePlugin, "images")
}

// Import reads an image archive (`docker save`, OCI layout, plain or gzip) and returns the names of the images that can
// be used now, as the CRI and pods know them. An image for another architecture than this machine's is an error. What
// was imported before an error stays.
func (r *Runtime) Import(ctx context.Context, archive io.Reader) ([]string, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	// Import itself, unpacking and telling the CRI are one: the lease keeps garbage collection off until the end.
	ctx, release, err := r.client.WithLease(ctx)
	if err != nil {
		return nil, fmt.Errorf("image archive: %w", err)
	}
	defer func() { _ = release(context.WithoutCancel(ctx)) }()

	found, err := r.client.Import(ctx, archive, containerd.WithSkipMissing())
	if errors.Is(err, images.ErrEmptyWalk) {
		return nil,
			fmt.Errorf("image archive: it has no image for this machine (%s): build or save it for this platform",
				platforms.DefaultString())
	}
	if err != nil {
		return nil, fmt.Errorf("image archive: %w", err)
	}
	if len(found) == 0 {
		return nil,
			errors.New("image archive: none of its images has a name: save it with a name and tag (docker save NAME:TAG)")
	}
	var names []string
	for _, img := range found {
		if err := r.adopt(ctx, img); err != nil {
			return names, err
		}
		names = append(names, img.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// adopt unpacks an imported image and makes the CRI know it.
func (r *Runtime) adopt(ctx context.Context, img images.Image) error {
	image := containerd.NewImageWithPlatform(r.client, img, platforms.Default())
	if err := image.Unpack(ctx, r.config.Snapshotter); err != nil {
		if errdefs.IsNotFound(err) {
			return fmt.Errorf("image %s: it has nothing for this machine (%s), or parts of it are missing from the archive: %w",
				img.Name, platforms.DefaultString(), err)
		}
		return fmt.Errorf("image %s: unpack: %w", img.Name, err)
	}
	if err := r.updater.UpdateImage(ctx, img.Name); err != nil {
		return fmt.Errorf("image %s: %w", img.Name, err)
	}
	return nil
}

// Export writes images by name as one archive which Import and docker load. Short names mean what they mean in a pod
// ("nginx" is docker.io/library/nginx:latest).
func (r *Runtime) Export(ctx context.Context, w io.Writer, refs ...string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	if len(refs) == 0 {
		return errors.New("export: name at least one image")
	}
	opts := []archive.ExportOpt{archive.WithPlatform(platforms.DefaultStrict())}
	for _, ref := range refs {
		name, err := reference.ParseDockerRef(ref)
		if err != nil {
			return fmt.Errorf("image name %q: %w", ref, err)
		}
		if _, err := r.client.ImageService().Get(ctx, name.String()); err != nil {
			if errdefs.IsNotFound(err) {
				return fmt.Errorf("image %s is not on this node: pull or import it first", name)
			}
			return fmt.Errorf("image %s: %w", name, err)
		}
		opts = append(opts, archive.WithImage(r.client.ImageService(), name.String()))
	}
	if err := r.client.Export(ctx, w, opts...); errdefs.IsNotFound(err) && r.config.snapshotterSocket != "" {
		return fmt.Errorf("export: an image whose layers snapshotter %s has, and this node has not downloaded, cannot be written: %w",
			r.config.Snapshotter, err)
	} else if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// Tag gives the image that the CRI calls by an id a further name, in place of the image that had it, and returns the
// name spelled out.
func (r *Runtime) Tag(ctx context.Context, id, name string) (string, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w", name, err)
	}
	if _, digested := named.(reference.Digested); digested {
		return "", fmt.Errorf("image name %q: an image cannot be given a digest: use a tag, for example app:1", name)
	}
	store := r.client.ImageService()
	img, err := store.Get(ctx, id)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", id, err)
	}
	further := images.Image{Name: named.String(), Target: img.Target}
	if _, err = store.Create(ctx, further); errdefs.IsAlreadyExists(err) {
		_, err = store.Update(ctx, further, "target")
	}
	if err == nil {
		err = r.updater.UpdateImage(ctx, further.Name)
	}
	if err != nil {
		return "", fmt.Errorf("image %s: %w", further.Name, err)
	}
	return further.Name, nil
}

// Untag takes a name, spelled out, from the image that has it. The image stays while it has another.
func (r *Runtime) Untag(ctx context.Context, name string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	err := r.client.ImageService().Delete(ctx, name, images.SynchronousDelete())
	if err == nil || errdefs.IsNotFound(err) {
		err = r.updater.UpdateImage(ctx, name) // which has the CRI forget it too
	}
	if err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	return nil
}

// Transfer is a part of an image, a layer or a manifest, that is being fetched.
type Transfer struct {
	Ref          string
	Bytes, Total int64
}

// DropPulls gives up what pulls that failed have left for the next ones to go on from.
func (r *Runtime) DropPulls(ctx context.Context) error { return r.puller.Drop(ctx) }

// Transfers are all that are under way, for whichever image. What a pull that failed has left for the next is none.
func (r *Runtime) Transfers(ctx context.Context) ([]Transfer, error) {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	list, err := r.client.ContentStore().ListStatuses(ctx)
	if err != nil {
		return nil, fmt.Errorf("list transfers: %w", err)
	}
	var all []Transfer
	for _, s := range list {
		if r.puller.Fetching(s.Ref) {
			all = append(all, Transfer{s.Ref, s.Offset, s.Total})
		}
	}
	return all, nil
}

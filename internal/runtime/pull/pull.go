// SPDX-License-Identifier: Apache-2.0

package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/snapshotters"
	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/semaphore"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// connections is how many layers of an image are fetched at a time: containerd's default for the CRI.
const connections = 3

// Config is what a Puller works with.
type Config struct {
	Client    *containerd.Client
	Namespace string // containerd's, of the CRI
	// Known makes the CRI look at an image again, by name.
	Known func(ctx context.Context, name string) error
	// Snapshotter is where layers are unpacked.
	Snapshotter string
	// Lazy says that the snapshotter may have layers of its own: it is told where they are from.
	Lazy bool
	// HostsDir has the settings of registries, laid out as containerd has them.
	HostsDir string
	// Progress is how long a pull may go on without a byte of the registry.
	Progress time.Duration
	// Stopping reports whether the runtime is being closed: what calls a pull off then is not who wanted it.
	Stopping func() bool
}

// Puller pulls images. Safe for concurrent use.
type Puller struct {
	Config
	names *keyed // names of images that are being pulled
	// unpack are layers that are being fetched or unpacked. Once is enough; but who waits for another's slow registry
	// in vain fetches and unpacks them, too.
	unpack *keyed
	parts  *parts
}

// New makes a Puller.
func New(c Config) *Puller {
	return &Puller{Config: c, names: newKeyed(0), unpack: newKeyed(c.Progress), parts: &parts{count: map[string]int{}}}
}

// Pull answers the CRI's call.
func (p *Puller) Pull(ctx context.Context, req *criapi.PullImageRequest) (*criapi.PullImageResponse, error) {
	ctx = namespaces.WithNamespace(ctx, p.Namespace)
	id, err := p.pull(ctx, req.GetImage().GetImage(), req.GetAuth())
	if err != nil {
		return nil, errgrpc.ToGRPC(err)
	}
	return &criapi.PullImageResponse{ImageRef: id}, nil
}

func (p *Puller) pull(ctx context.Context, image string, auth *criapi.AuthConfig) (id string, err error) {
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return "", fmt.Errorf("failed to parse image reference %q: %w", image, err)
	}
	ref := named.String()
	if err := p.names.Lock(ctx, ref); err != nil {
		return "", err
	}
	defer p.names.Unlock(ref)
	watched, watch := watchProgress(ctx, p.Progress)
	defer watch.stop()
	from := &once{Resolver: p.resolver(watched, auth, watch)}
	_, desc, err := from.Resolve(watched, ref)
	if err != nil {
		return "", watch.explain(fmt.Errorf("failed to pull and unpack image %q: failed to resolve reference %q: %w",
			ref, ref, err))
	}
	if id := p.present(ctx, named, desc); id != "" {
		return id, nil
	}
	kept, err := p.lease(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("failed to pull image %q: %w", ref, err)
	}
	img, err := p.fetch(kept.in(watched), ref, from)
	if err != nil {
		err = watch.explain(fmt.Errorf("failed to pull and unpack image %q: %w", ref, err))
		return "", errors.Join(err, kept.failed(ctx, err))
	}
	if id, err = p.name(kept.in(ctx), named, img); err != nil {
		return "", errors.Join(err, kept.failed(ctx, err))
	}
	return id, kept.done(ctx)
}

// fetch fetches an image and unpacks it, each layer when it has come and those below it are unpacked.
func (p *Puller) fetch(ctx context.Context, ref string, from remotes.Resolver) (containerd.Image, error) {
	begin, end := p.parts.of()
	defer end()
	opts := []containerd.RemoteOpt{
		containerd.WithResolver(from),
		containerd.WithImageHandler(images.HandlerFunc(begin)),
		containerd.WithPullSnapshotter(p.Snapshotter),
		containerd.WithPullUnpack,
		containerd.WithMaxConcurrentDownloads(connections),
		containerd.WithDownloadLimiter(semaphore.NewWeighted(connections)),
		containerd.WithUnpackOpts([]containerd.UnpackOpt{containerd.WithUnpackDuplicationSuppressor(p.unpack)}),
	}
	if p.Lazy {
		opts = append(opts, containerd.WithImageHandlerWrapper(snapshotters.AppendInfoHandlerWrapper(ref)))
	}
	return p.Client.Pull(ctx, ref, opts...)
}

// namesOf are the names that an image has at the CRI after a pull, besides its id.
func namesOf(named reference.Named, target ocispec.Descriptor) []string {
	if _, ok := named.(reference.Canonical); ok {
		return []string{named.String()}
	}
	return []string{named.String(), named.Name() + "@" + target.Digest.String()}
}

// present is the id of an image that is here, unpacked, with all its names; "" if there is anything to do.
func (p *Puller) present(ctx context.Context, named reference.Named, desc ocispec.Descriptor) string {
	img, err := p.Client.GetImage(ctx, named.String())
	if err != nil || img.Target().Digest != desc.Digest {
		return ""
	}
	if unpacked, err := img.IsUnpacked(ctx, p.Snapshotter); err != nil || !unpacked {
		return ""
	}
	config, err := img.Config(ctx)
	if err != nil {
		return ""
	}
	id := config.Digest.String()
	for _, name := range append(namesOf(named, desc), id) {
		got, err := p.Client.ImageService().Get(ctx, name)
		if err != nil || name != id && got.Target.Digest != desc.Digest || p.Known(ctx, name) != nil {
			return ""
		}
	}
	return id
}

// name gives an image that was pulled the names that it has at the CRI, and returns its id.
func (p *Puller) name(ctx context.Context, named reference.Named, img containerd.Image) (id string, err error) {
	config, err := img.Config(ctx)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", img.Name(), err)
	}
	store := p.Client.ImageService()
	for _, name := range namesOf(named, img.Target()) {
		if name != img.Name() {
			further := images.Image{Name: name, Target: img.Target()}
			if _, err = store.Create(ctx, further); errdefs.IsAlreadyExists(err) {
				_, err = store.Update(ctx, further, "target")
			}
		}
		if err == nil {
			err = p.Known(ctx, name)
		}
		if err != nil {
			return "", fmt.Errorf("image %s: %w", name, err)
		}
	}
	return config.Digest.String(), nil
}

// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/podspec"
)

// ownImage is an image that is made from the program.
type ownImage interface {
	name() string
	ensure(ctx context.Context, c *containerd.Client, snapshotter string) error
}

// ownImages sees to it that the images the program brings are there when they are needed, that no call of the CRI
// removes them, and that no registry is ever asked for a name of wherry's.
type ownImages struct {
	client      *containerd.Client
	snapshotter string
	updater     imageUpdater
	pause       ownImage
	toolbox     ownImage

	mu     sync.Mutex             // one at a time makes an image
	making atomic.Pointer[string] // the name of that image
}

// ensure makes what is missing, or is another wherry's, at the start. A toolbox that is missing is not waited for.
func (o *ownImages) ensure(ctx context.Context) error {
	if err := o.pause.ensure(ctx, o.client, o.snapshotter); err != nil || !o.there(ctx, o.toolbox) {
		return err
	}
	return o.toolbox.ensure(ctx, o.client, o.snapshotter)
}

// untilToolbox is how long after the start the toolbox is made, if nobody asks for it before: the start of a server has
// better uses for the processors.
const untilToolbox = 2 * time.Second

// late makes the toolbox if it is missing. Whoever asks for it has it made at once.
func (o *ownImages) late(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(untilToolbox):
		return o.have(ctx, o.toolbox)
	}
}

// before is called before each call of the CRI; an error is the call's answer.
func (o *ownImages) before(ctx context.Context, req any) error {
	switch r := req.(type) {
	case *criapi.RunPodSandboxRequest:
		return o.have(ctx, o.pause)
	case *criapi.ImageStatusRequest:
		if podspec.IsToolbox(r.GetImage().GetImage()) {
			return o.have(ctx, o.toolbox)
		}
	case *criapi.RemoveImageRequest:
		return o.refuseRemoval(ctx, r.GetImage().GetImage())
	}
	return refusePull(req)
}

// have makes an image again if it is gone. It is not called off half-way.
func (o *ownImages) have(ctx context.Context, i ownImage) error {
	name := i.name()
	if m := o.making.Load(); (m == nil || *m != name) && o.there(ctx, i) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.there(ctx, i) {
		return nil
	}
	o.making.Store(&name) // it has its name before it is complete
	defer o.making.Store(nil)
	ctx, cancel := context.WithTimeout(namespaces.WithNamespace(context.WithoutCancel(ctx), Namespace), bringTime)
	defer cancel()
	if err := i.ensure(ctx, o.client, o.snapshotter); err != nil {
		return err
	}
	if err := o.updater.UpdateImage(ctx, name); err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	return nil
}

// there reports whether an image has its name. While it has, its content stays; more is looked at when the server
// starts.
func (o *ownImages) there(ctx context.Context, i ownImage) bool {
	_, err := o.client.ImageService().Get(namespaces.WithNamespace(ctx, Namespace), i.name())
	return !errdefs.IsNotFound(err) // another error is the call's own to meet
}

// refuseRemoval refuses to remove an image of ours, by whichever of its names, its id, or the beginning of that.
func (o *ownImages) refuseRemoval(ctx context.Context, ref string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	store := o.client.ImageService()
	for _, i := range []ownImage{o.pause, o.toolbox} {
		own, err := store.Get(ctx, i.name())
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		called, err := store.List(ctx, "target.digest=="+own.Target.Digest.String())
		if err != nil {
			return err
		}
		if calls(ref, called) {
			return status.Errorf(codes.FailedPrecondition,
				"%s is built into wherry and is needed to run pods: it cannot be removed", i.name())
		}
	}
	return nil
}

// calls reports whether a CRI that is given ref finds the image with these names.
func calls(ref string, names []images.Image) bool {
	full := ref
	if r, err := imagename.Parse(ref); err == nil {
		full = r.Full
	}
	for _, n := range names {
		id := strings.TrimPrefix(n.Name, "sha256:")
		if n.Name == ref || n.Name == full || id != n.Name && ref != "" &&
			strings.HasPrefix(id, strings.TrimPrefix(ref, "sha256:")) {
			return true
		}
	}
	return false
}

// refusePull refuses to ask a registry for a name of wherry's.
func refusePull(req any) error {
	r, ok := req.(*criapi.PullImageRequest)
	if !ok {
		return nil
	}
	ref, err := imagename.Parse(r.GetImage().GetImage())
	if err != nil || !ref.Own() {
		return nil // it is the CRI's to say what is wrong
	}
	return status.Error(codes.NotFound, imagename.NotPulled(r.GetImage().GetImage()))
}

// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"

	"github.com/wherryproject/wherry/internal/enginesocket"
)

// connectWithin bounds how long a containerd may take to answer at all.
const connectWithin = 10 * time.Second

// openContainerd exports an image as ctr images export does.
func openContainerd(ctx context.Context, image string, o Options) (io.ReadCloser, error) {
	socket, err := enginesocket.ContainerdPlace().Find(ctx, o.Address, o.Getenv)
	if err != nil { // says plainly what the client would say late
		return nil, err
	}
	client, err := containerd.New(socket, containerd.WithTimeout(connectWithin))
	if err != nil {
		return nil, fmt.Errorf("containerd (%s): %w", socket, err)
	}
	found, err := find(ctx, client, image, o.Namespace)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("containerd (%s): %w", socket, err)
	}
	return export(ctx, client, found), nil
}

// place is an image and the namespace of containerd that it is in.
type place struct {
	namespace string
	image     images.Image
}

// find looks for the image, in one namespace or in all.
func find(ctx context.Context, client *containerd.Client, image, namespace string) (place, error) {
	all := []string{namespace}
	if namespace == "" {
		var err error
		if all, err = client.NamespaceService().List(ctx); err != nil {
			return place{}, err
		}
	}
	var found []place
	for _, ns := range all {
		img, err := lookup(namespaces.WithNamespace(ctx, ns), client.ImageService(), image)
		if err == nil {
			found = append(found, place{ns, img})
		} else if !errdefs.IsNotFound(err) {
			return place{}, fmt.Errorf("namespace %s: %w", ns, err)
		}
	}
	return choose(found, image, all)
}

// lookup gets an image by the name that was given, or by what that is in a pod: nerdctl and Kubernetes spell names out,
// ctr takes them as they are.
func lookup(ctx context.Context, store images.Store, image string) (images.Image, error) {
	img, err := store.Get(ctx, image)
	if !errdefs.IsNotFound(err) {
		return img, err
	}
	named, bad := reference.ParseDockerRef(image)
	if bad != nil || named.String() == image {
		return img, err
	}
	return store.Get(ctx, named.String())
}

// choose decides which one is meant. The same image in several namespaces is one; different ones are not guessed among.
func choose(found []place, image string, looked []string) (place, error) {
	if len(found) == 0 {
		slices.Sort(looked)
		return place{}, fmt.Errorf("there is no image %q (namespaces: %s)", image, strings.Join(looked, ", "))
	}
	for _, other := range found[1:] {
		if other.image.Target.Digest != found[0].image.Target.Digest {
			return place{}, fmt.Errorf("%q is another image in namespace %s than in %s: choose one with --namespace",
				image, found[0].namespace, other.namespace)
		}
	}
	return found[0], nil
}

// export writes an image into a pipe and returns its other end, which closes the client.
func export(ctx context.Context, client *containerd.Client, p place) io.ReadCloser {
	ctx, cancel := context.WithCancel(namespaces.WithNamespace(ctx, p.namespace))
	r, w := io.Pipe()
	e := &exported{r, cancel, make(chan struct{})}
	go func() {
		defer close(e.ended)
		defer client.Close()
		img := p.image
		if named, err := reference.ParseDockerRef(img.Name); err == nil {
			img.Name = named.String() // as pods call it
		}
		err := client.Export(ctx, w, archive.WithPlatform(platforms.DefaultStrict()),
			archive.WithManifest(img.Target, img.Name))
		if errdefs.IsNotFound(err) {
			err = fmt.Errorf("image %s: parts of it for this machine (%s) are no longer there, as where containerd "+
				"discards what it has unpacked: pull it again, or push it to a registry: %w",
				img.Name, platforms.DefaultString(), err)
		}
		w.CloseWithError(err)
	}()
	return e
}

// exported is an image that is being written.
type exported struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

// Close ends the export and waits for it.
func (e *exported) Close() error {
	e.cancel()
	err := e.PipeReader.CloseWithError(errors.New("the archive is not read any more"))
	<-e.ended
	return err
}

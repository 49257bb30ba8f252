// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// TestOwnImages proves PL-03 DC-01: the images that the program brings are pinned, are removed by no name of theirs, are made again when they
// are gone, also while the server runs, and no registry is asked for a name of wherry's.
func TestOwnImages(t *testing.T) {
	dir := dataFolder(t)
	r := start(t, dir)
	if err := r.Close(); err != nil { // what a former server made is seen to as well
		t.Fatal(err)
	}
	r = start(t, dir)
	cri := criapi.NewImageServiceClient(r.Conn())
	pause, err := pauseImage()
	if err != nil {
		t.Fatal(err)
	}
	status := func(ref string) *criapi.Image {
		res, err := cri.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: ref}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Image
	}
	for _, name := range []string{pause.ref, debugask.ToolboxImage} {
		img := status(name)
		if img == nil || !img.Pinned {
			t.Fatalf("%s: %v, want it pinned", name, img)
		}
		for _, ref := range append([]string{name, img.Id, strings.TrimPrefix(img.Id, "sha256:")[:12]}, img.RepoTags...) {
			if _, err := cri.RemoveImage(t.Context(), &criapi.RemoveImageRequest{Image: &criapi.ImageSpec{Image: ref}}); err == nil ||
				!strings.Contains(err.Error(), "is built into wherry") {
				t.Errorf("RemoveImage %s: %v, want a refusal", ref, err)
			}
		}
	}
	for _, ref := range []string{pause.ref, debugask.ToolboxImage, "wherry.dev/app:1", "WHERRY.dev:443/app:1"} {
		if _, err := cri.PullImage(t.Context(), &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: ref}}); err == nil ||
			!strings.Contains(err.Error(), "never fetched from a registry") {
			t.Errorf("PullImage %s: %v, want a refusal", ref, err)
		}
	}

	ctx := namespaces.WithNamespace(t.Context(), Namespace)
	for _, name := range []string{pause.ref, toolboxRef} {
		before := status(name)
		for _, ref := range []string{name, before.Id} {
			if err := r.client.ImageService().Delete(ctx, ref); err != nil {
				t.Fatal(err)
			}
			if err := r.updater.UpdateImage(ctx, ref); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := runPod(t, r)
	p.run("debug", nil, func(c *criapi.ContainerConfig) {
		c.Image.Image = status(debugask.ToolboxImage).GetId()
	})
	p.stop()
	for _, name := range []string{pause.ref, toolboxRef} {
		if img := status(name); img == nil || !img.Pinned || !slices.Contains(img.RepoTags, name) {
			t.Errorf("%s was not made again as it was: %v", name, img)
		}
	}
}

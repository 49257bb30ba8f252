// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/node/evict"
	"github.com/wherryproject/wherry/internal/node/pressure"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
	"github.com/wherryproject/wherry/internal/podspec"
)

// imagesEvery is how often it is noted which images are in use, and, above the high mark, some are removed. It is the
// kubelet's period; nothing notifies the agent when a file system fills up.
const imagesEvery = 5 * time.Minute

// imageDisk is what the disk of images has, as far as it is known which that is.
func (a *Agent) imageDisk() (free, capacity int64, err error) {
	at := a.evictor.meter.ImageFs
	if at == "" {
		at = a.cfg.DataDir
	}
	bytes, err := pressure.Disk(at)
	return bytes.Available, bytes.Capacity, err
}

// imageKeeper removes images that nobody uses (PL-13). It belongs to one goroutine.
type imageKeeper struct {
	images  runtimeapi.ImageServiceClient
	runtime runtimeapi.RuntimeServiceClient
	log     *slog.Logger
	seen    map[string]evict.Image // what is remembered of each, by id
	pulls   *pullrecord.Store      // who may use which of them
	looked  time.Time
	drop    func(context.Context) error // gives up what failed pulls have left; nil: they leave nothing
}

// collect looks at the images, and removes those that [evict.Images] names; all of the unused ones if now is set. fs is
// that of the images; named are images that pods name.
func (k *imageKeeper) collect(ctx context.Context, p evict.ImagePolicy, fs evict.Reading, now bool, named []string) {
	if p.High == 0 || !now && time.Since(k.looked) < imagesEvery {
		return
	}
	k.looked = time.Now()
	if err := k.look(ctx, named); err != nil {
		k.log.Warn("cannot list images, so none is removed", "err", err)
		return
	}
	var freed int64 // since fs was measured
	for _, i := range evict.Old(p, slices.Collect(maps.Values(k.seen)), k.looked) {
		if ctx.Err() != nil {
			return
		}
		if k.remove(ctx, i, "nobody has used it for longer than the maximum age") {
			freed += i.Size
		}
	}
	fs.Available = min(fs.Available+freed, fs.Capacity)
	out, enough := evict.Images(p, fs, now, slices.Collect(maps.Values(k.seen)), k.looked)
	if k.drop != nil && (now || enough > 0) {
		if err := k.drop(ctx); err != nil {
			k.log.Warn("what failed image pulls have left cannot be removed", "err", err)
		}
	}
	for _, i := range out {
		if enough <= 0 || ctx.Err() != nil {
			return
		}
		if k.remove(ctx, i, "the disk needs room") {
			enough -= i.Size
		}
	}
}

func (k *imageKeeper) remove(ctx context.Context, i evict.Image, why string) bool {
	_, err := k.images.RemoveImage(ctx,
		&runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: i.ID}})
	if err != nil {
		k.log.Warn("cannot remove unused image", "image", i.ID, "err", err)
		return false
	}
	k.log.Info("removed unused image", "image", i.ID, "bytes", i.Size, "why", why)
	delete(k.seen, i.ID)
	return true
}

// prune forgets who may use images that are gone.
func (k *imageKeeper) prune(images []*runtimeapi.Image, at time.Time) {
	present := map[string]bool{}
	for _, i := range images {
		present[i.GetId()] = true
	}
	if err := k.pulls.Prune(present, at); err != nil {
		k.log.Warn("cannot remove records of the pulls of images that are gone", "err", err)
	}
}

// recoverPulls has pulls that an earlier process began known as what became of them, before any pod asks.
func (a *Agent) recoverPulls(ctx context.Context) {
	images, err := a.cfg.CRI.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		a.log.Warn("cannot list images, so those of pulls that were cut off are pulled again", "err", err)
		return
	}
	names := map[string]string{}
	for _, i := range images.GetImages() {
		for _, name := range slices.Concat(i.GetRepoTags(), i.GetRepoDigests()) {
			names[name] = i.GetId()
		}
	}
	if err := a.pulls.Conclude(names, time.Now()); err != nil {
		a.log.Warn("notes of image pulls that were cut off", "err", err)
	}
}

// look brings seen up to date.
func (k *imageKeeper) look(ctx context.Context, named []string) error {
	before := time.Now()
	images, err := k.images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return err
	}
	k.prune(images.GetImages(), before)
	containers, err := k.runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, name := range named {
		if r, err := imagename.Parse(name); err == nil {
			used[r.Full] = true
		}
	}
	for _, c := range containers.GetContainers() { // also those that have exited: somebody may look into them
		used[c.GetImageRef()], used[c.GetImageId()], used[c.GetImage().GetImage()] = true, true, true
	}
	delete(used, "")
	was := k.seen
	k.seen = make(map[string]evict.Image, len(images.GetImages()))
	for _, i := range images.GetImages() {
		k.seen[i.GetId()] = remember(was[i.GetId()], i, used, k.looked)
	}
	return nil
}

// remember takes in how an image was found. One that no registry gave could not be had again, and is kept. (Pure.)
func remember(was evict.Image, i *runtimeapi.Image, used map[string]bool, now time.Time) evict.Image {
	out := evict.Image{ID: i.GetId(), Size: int64(i.GetSize()), Found: was.Found, LastUsed: was.LastUsed}
	if out.Found.IsZero() {
		out.Found = now
	}
	is := func(name string) bool { return used[name] }
	out.InUse = used[i.GetId()] || slices.ContainsFunc(i.GetRepoTags(), is) ||
		slices.ContainsFunc(i.GetRepoDigests(), is)
	out.Kept = i.GetPinned() || len(i.GetRepoDigests()) == 0 || slices.ContainsFunc(i.GetRepoTags(), imagename.BuiltIn)
	if out.InUse {
		out.LastUsed = now
	}
	return out
}

// imagesOf lists the images that a pod names.
func imagesOf(pod *corev1.Pod) (out []string) {
	for ref := range podspec.Containers(&pod.Spec) {
		out = append(out, ref.Container.Image)
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].Image; v != nil {
			out = append(out, v.Reference)
		}
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// AddImage puts an image on the node.
func (f *Fake) AddImage(ref string, img Image) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w.addImage(normal(ref), img)
}

// Publish puts an image into the registry.
func (f *Fake) Publish(ref string, r Remote) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.w.registry[normal(ref)] = r
}

// normal is the full form of a reference; one that is not well formed stays as it is.
func normal(ref string) string {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return ref
	}
	return named.String()
}

func (w *world) addImage(ref string, img Image) *image {
	if old := w.images[ref]; old != nil {
		old.Image = img
		return old
	}
	sum := sha256.Sum256([]byte(ref))
	digest := sha256.Sum256([]byte("manifest of " + ref))
	name, _, _ := strings.Cut(ref, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	_, made := w.newID("image")
	i := &image{Image: img, made: made, ref: ref, id: "sha256:" + hex.EncodeToString(sum[:]),
		digest: name + "@sha256:" + hex.EncodeToString(digest[:])}
	if i.Size == 0 {
		i.Size = 1 << 20
	}
	w.images[ref] = i
	return i
}

// imageOf finds an image by reference, by digest or by id.
func (w *world) imageOf(ref string) *image {
	if ref == "" {
		return nil
	}
	if i := w.images[normal(ref)]; i != nil {
		return i
	}
	for _, i := range sorted(w.images) {
		if i.id == ref || i.digest == ref || strings.HasPrefix(strings.TrimPrefix(i.id, "sha256:"), ref) &&
			len(ref) >= 12 {
			return i
		}
	}
	return nil
}

func (i *image) cri() *runtimeapi.Image {
	out := &runtimeapi.Image{Id: i.id, RepoDigests: []string{i.digest}, Size: i.Size, Username: i.Username,
		Spec: &runtimeapi.ImageSpec{Image: i.ref}}
	if !strings.Contains(i.ref, "@") {
		out.RepoTags = []string{i.ref}
	}
	if i.UID != nil {
		out.Uid = &runtimeapi.Int64Value{Value: *i.UID}
	}
	return out
}

// ListImages lists all, or the one filtered for.
func (f *Fake) ListImages(ctx context.Context,
	r *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	if err := f.enter(ctx, "ListImages", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runtimeapi.ListImagesResponse{}
	if ref := r.GetFilter().GetImage().GetImage(); ref != "" {
		if i := f.w.imageOf(ref); i != nil {
			out.Images = append(out.Images, i.cri())
		}
		return out, nil
	}
	for _, i := range sorted(f.w.images) {
		out.Images = append(out.Images, i.cri())
	}
	return out, nil
}

// ImageStatus answers with no image, and no error, for one that is not there.
func (f *Fake) ImageStatus(ctx context.Context,
	r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	if err := f.enter(ctx, "ImageStatus", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.w.imageOf(r.GetImage().GetImage()); i != nil {
		return &runtimeapi.ImageStatusResponse{Image: i.cri()}, nil
	}
	return &runtimeapi.ImageStatusResponse{}, nil
}

// PullImage takes the registry's time and gives its error.
func (f *Fake) PullImage(ctx context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	if err := f.enter(ctx, "PullImage", r); err != nil {
		return nil, err
	}
	asked := r.GetImage().GetImage()
	if _, err := reference.ParseDockerRef(asked); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", asked, err)
	}
	ref := normal(asked)
	f.mu.Lock()
	remote, ok := f.w.registry[ref]
	f.mu.Unlock()
	if err := f.sleep(ctx, remote.PullDelay); err != nil {
		return nil, err
	}
	switch auth := r.GetAuth(); {
	case !ok && !f.config.AnyImage:
		return nil,
			status.Errorf(codes.NotFound,
				"failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", ref, ref, ref)
	case remote.PullError != nil:
		return nil, remote.PullError
	case remote.User != "" && (auth.GetUsername() != remote.User || auth.GetPassword() != remote.Password):
		return nil,
			status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to authorize: 401 Unauthorized",
				ref)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &runtimeapi.PullImageResponse{ImageRef: f.w.addImage(ref, remote.Image).id}, nil
}

// RemoveImage is idempotent.
func (f *Fake) RemoveImage(ctx context.Context,
	r *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	if err := f.enter(ctx, "RemoveImage", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.w.imageOf(r.GetImage().GetImage()); i != nil {
		delete(f.w.images, i.ref)
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo sums the sizes up.
func (f *Fake) ImageFsInfo(ctx context.Context,
	r *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	if err := f.enter(ctx, "ImageFsInfo", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var used uint64
	for _, i := range f.w.images {
		used += i.Size
	}
	fs := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes:  &runtimeapi.UInt64Value{Value: used},
		InodesUsed: &runtimeapi.UInt64Value{Value: uint64(len(f.w.images))},
	}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{fs},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{fs}}, nil
}

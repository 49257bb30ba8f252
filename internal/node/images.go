// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A node's status names no more images than the kubelet's does by default (--node-status-max-images), and each by no
// more names.
const (
	maxStatusImages     = 50
	maxStatusImageNames = 5
)

// imagesTime is how long the runtime may take to list images: the node's lease waits for it.
const imagesTime = 5 * time.Second

// images are those that the node's status names; what it named before, when the runtime does not answer.
func (a *Agent) images(ctx context.Context, before []corev1.ContainerImage) []corev1.ContainerImage {
	ctx, cancel := context.WithTimeout(ctx, imagesTime)
	defer cancel()
	list, err := a.cfg.CRI.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return before // the node's conditions tell what is wrong with the runtime
	}
	return statusImages(list.GetImages())
}

// statusImages are the largest of images, by their digests and then by their tags. (Pure.)
func statusImages(list []*runtimeapi.Image) []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, i := range list {
		// A runtime may list them in another order each time, and the status is stored anew when it differs.
		names := slices.Concat(slices.Sorted(slices.Values(i.GetRepoDigests())),
			slices.Sorted(slices.Values(i.GetRepoTags())))
		if len(names) == 0 {
			continue // there is no way to ask for it
		}
		out = append(out, corev1.ContainerImage{Names: names[:min(len(names), maxStatusImageNames)],
			SizeBytes: int64(i.GetSize())})
	}
	slices.SortFunc(out, func(a, b corev1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), slices.Compare(a.Names, b.Names))
	})
	return out[:min(len(out), maxStatusImages)]
}

// sameImages reports whether two lists of images are one.
func sameImages(a, b []corev1.ContainerImage) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.ContainerImage) bool {
		return a.SizeBytes == b.SizeBytes && slices.Equal(a.Names, b.Names)
	})
}

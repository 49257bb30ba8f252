// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// ImageNotAllowed is the reason of an [Error] for an image that is not on the node's [AllowList].
const ImageNotAllowed = "ImageNotAllowed"

// AllowFlag is the flag that holds the patterns of an [AllowList].
const AllowFlag = "--debug-image-allow"

// AllowList says by [imagename.Patterns] which images debug containers and image execs of a node may have (DC-13);
// empty: all of them.
type AllowList imagename.Patterns

// ParseAllowList checks patterns.
func ParseAllowList(patterns []string) (AllowList, error) {
	for _, p := range patterns {
		if err := imagename.Check(p); err != nil {
			return nil, err
		}
	}
	return patterns, nil
}

// Check returns an *[Error] with the reason [ImageNotAllowed] if the list has no pattern for the image. A name that is
// no image reference at all is none of its business.
func (l AllowList) Check(image string) error {
	ref, err := imagename.Parse(image)
	if len(l) == 0 || err != nil {
		return nil
	}
	if _, ok := imagename.Patterns(l).Match(ref, image); ok {
		return nil
	}
	return l.refuse(fmt.Sprintf("image %q", image), image)
}

// CheckID is Check for an image that is called by its id (see [imagename.IsID]): every name that the node knows it by
// must be allowed, and it must have one.
func (l AllowList) CheckID(image string, names []string) error {
	if len(l) == 0 {
		return nil
	}
	if len(names) == 0 {
		return l.refuse(fmt.Sprintf("image id %q, which stands for no image with a name here,", image), image)
	}
	for _, name := range names {
		ref, err := imagename.Parse(name)
		if err == nil {
			if _, ok := imagename.Patterns(l).Match(ref, name); ok {
				continue
			}
		}
		return l.refuse(fmt.Sprintf("image id %q, which stands for %s,", image, name), image)
	}
	return nil
}

func (l AllowList) refuse(what, image string) error {
	return &Error{Reason: ImageNotAllowed, Image: image, Message: fmt.Sprintf(
		"%s is not allowed for debugging on this node: %s permits %s", what, AllowFlag, strings.Join(l, ", "))}
}

// Allowed is what an allow list says of an image, whose names are looked up at the runtime if it is called by its id.
func (p *Puller) Allowed(ctx context.Context, l AllowList, image string) error {
	if len(l) == 0 || !imagename.IsID(image) {
		return l.Check(image)
	}
	r, err := p.cfg.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: image}})
	if err != nil {
		return &Error{Reason: ImageInspectError, Image: image, Err: err,
			Message: fmt.Sprintf("Failed to inspect image %q: %v", image, err)}
	}
	return l.CheckID(image, namesOf(r.GetImage()))
}

// namesOf are the tags and digests that a runtime knows an image by.
func namesOf(i *runtimeapi.Image) []string {
	return slices.Concat(i.GetRepoTags(), i.GetRepoDigests())
}

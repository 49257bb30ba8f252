// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"strings"

	"github.com/wherryproject/wherry/internal/imagename"
)

// ImageNotAllowed is the reason of an [Error] for an image that is not on the node's [AllowList].
const ImageNotAllowed = "ImageNotAllowed"

// AllowFlag is the flag that holds the patterns of an [AllowList].
const AllowFlag = "--debug-image-allow"

// AllowList says by [imagename.Patterns] which images debug containers and image execs of a node may have (DC-13); empty: all of
// them.
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

// Check returns an *[Error] with the reason [ImageNotAllowed] if the list has no pattern for the image. A name that is no image
// reference at all is none of its business.
func (l AllowList) Check(image string) error {
	ref, err := imagename.Parse(image)
	if len(l) == 0 || err != nil {
		return nil
	}
	if _, ok := imagename.Patterns(l).Match(ref, image); ok {
		return nil
	}
	return &Error{Reason: ImageNotAllowed, Image: image, Message: fmt.Sprintf(
		"image %q is not allowed for debugging on this node: %s permits %s", image, AllowFlag, strings.Join(l, ", "))}
}

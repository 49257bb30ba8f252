// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"path"
	"strings"
)

// ImageNotAllowed is the reason of an [Error] for an image that is not on the node's [AllowList].
const ImageNotAllowed = "ImageNotAllowed"

// AllowFlag is the flag that holds the patterns of an [AllowList].
const AllowFlag = "--debug-image-allow"

// AllowList says which images debug containers and image execs of a node may have (DC-13); empty: all of them.
//
// A pattern is held against an image's name as it was given and with registry, library/ and tag spelled out. In it * stands for
// any characters but /, ? for one, [a-z] for one of these; at its end, /** stands for all that lies below. A pattern without a tag
// or digest does not stand for those with one: end it with * for these.
type AllowList []string

// ParseAllowList checks patterns.
func ParseAllowList(patterns []string) (AllowList, error) {
	for _, p := range patterns {
		if strings.TrimSpace(p) != p || p == "" {
			return nil, fmt.Errorf("%q is not a pattern: it is empty or has blanks around it", p)
		}
		if _, err := path.Match(strings.TrimSuffix(p, "/**"), ""); err != nil {
			return nil, fmt.Errorf("%q is not a pattern: %w; write it as registry.example.com/tools/*", p, err)
		}
	}
	return patterns, nil
}

// Check returns an *[Error] with the reason [ImageNotAllowed] if the list has no pattern for the image. A name that is no image
// reference at all is none of its business.
func (l AllowList) Check(image string) error {
	ref, err := Parse(image)
	if len(l) == 0 || err != nil {
		return nil
	}
	for _, p := range l {
		if stands(p, image) || stands(p, ref.Given) || stands(p, ref.Full) {
			return nil
		}
	}
	return &Error{Reason: ImageNotAllowed, Image: image, Message: fmt.Sprintf(
		"image %q is not allowed for debugging on this node: %s permits %s", image, AllowFlag, strings.Join(l, ", "))}
}

// stands tells whether a pattern stands for a name.
func stands(pattern, name string) bool {
	if above, ok := strings.CutSuffix(pattern, "/**"); ok {
		parts := strings.Split(name, "/")
		n := strings.Count(above, "/") + 1
		if len(parts) <= n {
			return false
		}
		pattern, name = above, strings.Join(parts[:n], "/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

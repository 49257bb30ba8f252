// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import "fmt"

// NeedsNames reports whether the policy can judge an image that is called by its id only when the names of that image
// are known. A policy that merely requires a digest cannot be walked around by an id, which says as exactly what runs.
func (s *ImagePolicySpec) NeedsNames() bool { return len(s.Allow)+len(s.Deny) > 0 }

// JudgeID is [ImagePolicySpec.Judge] for an image that is called by its id (see [imagename.IsID]): all names under
// which nodes know the image must be allowed, and none denied. One that has no name is refused: nobody can tell where
// it comes from.
func (s *ImagePolicySpec) JudgeID(image string, names []string) string {
	if !s.NeedsNames() {
		return ""
	}
	if len(names) == 0 {
		return fmt.Sprintf("image %q is an image id, and no node knows a name of such an image to check; name the image as registry/name:tag%s",
			image, s.instead())
	}
	byName := *s
	byName.RequireDigest = false
	for _, name := range names {
		if against := byName.Judge(name); against != "" {
			return fmt.Sprintf("image id %q stands for %s", image, against)
		}
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package pullrecord

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wherryproject/wherry/internal/imagename"
)

// Names of the policies, as in the kubelet's imagePullCredentialsVerificationPolicy
// (https://kubernetes.io/docs/concepts/containers/images/#ensureimagepullcredentialverification).
const (
	NeverVerify                  = "NeverVerify"
	NeverVerifyPreloadedImages   = "NeverVerifyPreloadedImages" // the default
	NeverVerifyAllowlistedImages = "NeverVerifyAllowlistedImages"
	AlwaysVerify                 = "AlwaysVerify"
)

// Policies are the names of all policies.
func Policies() []string {
	return []string{NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages, AlwaysVerify}
}

// Policy says for which images on the node a pod's credentials are verified. The zero value is
// NeverVerifyPreloadedImages.
type Policy struct {
	name      string
	allowlist []string // repositories with their registry; one that ends in / stands for all below it
}

// NewPolicy checks a policy and its list of images: repositories without a tag or digest, or with /* at the end. "" is
// the default policy.
func NewPolicy(name string, allowlist []string) (Policy, error) {
	switch {
	case name == "":
		name = NeverVerifyPreloadedImages
	case !slices.Contains(Policies(), name):
		return Policy{}, fmt.Errorf("there is no image pull credentials verification policy %q: choose one of %s", name,
			strings.Join(Policies(), ", "))
	}
	if len(allowlist) > 0 && name != NeverVerifyAllowlistedImages {
		return Policy{},
			fmt.Errorf("an allowlist of preloaded images only applies to the policy %s: leave it out, or choose that policy", NeverVerifyAllowlistedImages)
	}
	p := Policy{name: name}
	for _, pattern := range allowlist {
		entry, err := parseEntry(pattern)
		if err != nil {
			return Policy{}, err
		}
		p.allowlist = append(p.allowlist, entry)
	}
	return p, nil
}

// parseEntry reads an entry of the allowlist: registry.example.com/team/* or registry.example.com/team/app.
func parseEntry(pattern string) (string, error) {
	if above, below := strings.CutSuffix(pattern, "*"); below {
		if len(above) < 2 || !strings.HasSuffix(above, "/") || strings.ContainsAny(above, "* \t") {
			return "",
				fmt.Errorf("%q is not an image: * is only allowed at the end, below a registry: registry.example.com/team/*", pattern)
		}
		return above, nil
	}
	ref, err := imagename.Parse(pattern)
	if err != nil {
		return "", err
	}
	if name := repository(ref); name != pattern {
		return "",
			fmt.Errorf("%q is not an image as the allowlist needs it: write the registry, and neither tag nor digest: %s", pattern, name)
	}
	return pattern, nil
}

// verifies reports whether credentials are verified for an image; pulled says that it came by a pull for a pod, as far
// as is known.
func (p Policy) verifies(image imagename.Reference, pulled bool) bool {
	switch p.name {
	case NeverVerify:
		return false
	case AlwaysVerify:
		return true
	case NeverVerifyAllowlistedImages:
		return !slices.ContainsFunc(p.allowlist, func(entry string) bool {
			name := repository(image)
			return name == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(name, entry)
		})
	}
	return pulled
}

// repository is an image's name without tag and digest.
func repository(image imagename.Reference) string { return image.Registry + "/" + image.Repository }

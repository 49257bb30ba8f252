// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Use is one image of a pod and what it is for.
//
// +k8s:openapi-gen=false
type Use struct {
	Image string
	By    string // for a person: container "main", image volume "data"
}

// Concerns reports whether a policy is about a namespace. A selector that cannot be read is an error: nobody can tell
// then.
func (s *ImagePolicySpec) Concerns(ns *corev1.Namespace) (bool, error) {
	if s.NamespaceSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(s.NamespaceSelector)
		if err != nil {
			return false, err
		}
		return selector.Matches(labels.Set(ns.Labels)), nil
	}
	for _, name := range s.Namespaces {
		if name == ns.Name {
			return true, nil
		}
	}
	return len(s.Namespaces) == 0, nil
}

// Judge says what the policy has against an image, for a person, with what would be allowed; "" is nothing. What is no
// image's name is refused: nobody can tell what it stands for.
func (s *ImagePolicySpec) Judge(image string) string {
	ref, err := imagename.Parse(image)
	if err != nil {
		return fmt.Sprintf("cannot check image %q: %v", image, err)
	}
	if by, denied := imagename.Patterns(s.Deny).Touch(ref, image); denied {
		return fmt.Sprintf("image %q is denied by %s%s", image, by, s.instead())
	}
	if _, allowed := imagename.Patterns(s.Allow).Match(ref, image); len(s.Allow) > 0 && !allowed {
		return fmt.Sprintf("image %q is not allowed%s", image, s.instead())
	}
	if s.RequireDigest && ref.Digest == "" {
		return fmt.Sprintf("image %q is named without a digest; name it as %s/%s@sha256:…", image, ref.Registry,
			ref.Repository)
	}
	return ""
}

// instead says what is allowed.
func (s *ImagePolicySpec) instead() string {
	if len(s.Allow) == 0 {
		return ""
	}
	digest := ""
	if s.RequireDigest {
		digest = ", with a digest"
	}
	return "; allowed are " + strings.Join(s.Allow, ", ") + digest
}

// New are the images that a pod has and old had not, for the same purpose. An image that stays is not judged again, so
// that a pod can still be changed otherwise when a policy has come after it. old is nil for a new pod.
func New(pod, old *corev1.PodSpec) (uses []Use) {
	had := map[Use]bool{}
	if old != nil {
		for _, u := range images(old) {
			had[u] = true
		}
	}
	for _, u := range images(pod) {
		if !had[u] {
			uses = append(uses, u)
		}
	}
	return uses
}

func images(spec *corev1.PodSpec) (uses []Use) {
	for ref := range podspec.Containers(spec) {
		what := ""
		switch ref.Kind {
		case podspec.Ephemeral:
			what = "ephemeral "
		case podspec.Init, podspec.Sidecar:
			what = "init "
		case podspec.Main:
		}
		uses = append(uses, Use{ref.Container.Image, fmt.Sprintf("%scontainer %q", what, ref.Container.Name)})
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.Image != nil && v.Image.Reference != "" {
			uses = append(uses, Use{v.Image.Reference, fmt.Sprintf("image volume %q", v.Name)})
		}
	}
	return uses
}

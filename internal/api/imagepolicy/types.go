// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Action is what becomes of an image that a policy is against.
type Action string

const (
	// Enforce refuses it.
	Enforce Action = "Enforce"
	// Warn lets it pass and tells the client.
	Warn Action = "Warn"
	// Audit lets it pass and puts it into the audit log.
	Audit Action = "Audit"
)

// ImagePolicy says which images the pods of some namespaces may have: the images of all containers, also ephemeral
// ones, of image execs, and of image volumes.
type ImagePolicy struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Which images, and where.
	Spec ImagePolicySpec `json:"spec"`
}

// ImagePolicySpec says which images may be used, and where. An image that pods have already is judged no more.
type ImagePolicySpec struct {
	// Names of the namespaces it is about. At most one of namespaces and namespaceSelector may be given; with neither
	// it is about all namespaces.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Labels of the namespaces it is about. Every namespace has its name in the label kubernetes.io/metadata.name.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Patterns of the images that may be used; none: all that no pattern of deny stands for. A pattern is held against
	// the image's name as it is written and with registry, library/ and tag spelled out. * stands for any characters
	// but /, ? for one, [a-z] for one of these; /** at the end for all that lies below, ** alone for everything. A
	// pattern without tag or digest does not stand for names with one: end it with *.
	// +optional
	// +listType=atomic
	Allow []string `json:"allow,omitempty"`
	// Patterns of the images that must not be used, whatever allow says. Here a pattern without tag or digest stands
	// for all versions of an image.
	// +optional
	// +listType=atomic
	Deny []string `json:"deny,omitempty"`
	// Whether an image must be named by its digest (name@sha256:...), so that what runs is what was looked at.
	// +optional
	RequireDigest bool `json:"requireDigest,omitempty"`
	// What becomes of an image that may not be used: Enforce (refused), Warn (the client is told) or Audit (it is noted
	// in the audit log). Defaults to Enforce.
	// +optional
	Action Action `json:"action,omitempty"`
}

// ImagePolicyList is a list of policies.
type ImagePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The policies.
	Items []ImagePolicy `json:"items"`
}

// Equal reports whether two policies say the same.
func (s *ImagePolicySpec) Equal(other *ImagePolicySpec) bool {
	return equality.Semantic.DeepEqual(s, other)
}

// SetDefaults fills what is left out.
func SetDefaults(p *ImagePolicy) {
	if p.Spec.Action == "" {
		p.Spec.Action = Enforce
	}
}

// SPDX-License-Identifier: Apache-2.0

package image

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/imagename"
)

// PolicyOf is the pull policy of an image: the given one, or what Kubernetes takes when none is: Always for the tag
// latest, else IfNotPresent.
func PolicyOf(given corev1.PullPolicy, ref imagename.Reference) corev1.PullPolicy {
	switch {
	case given != "":
		return given
	case ref.Digest == "" && ref.Tag == "latest":
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

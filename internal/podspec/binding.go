// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateBinding says what is wrong with a Binding of a Pod: its target must be a node, by name. Whether the
// Pod can still be bound (not bound, not deleted, no gates) is for the storage to say: that is a conflict.
func ValidateBinding(b *corev1.Binding) field.ErrorList {
	var all field.ErrorList
	target := field.NewPath("target")
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		all = append(all, field.NotSupported(target.Child("kind"), b.Target.Kind, []string{"Node", "<empty>"}))
	}
	return append(all, dnsSubdomain(target.Child("name"), b.Target.Name)...)
}

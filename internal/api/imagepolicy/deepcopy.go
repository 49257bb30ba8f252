// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto writes a copy of p that shares nothing with it.
func (p *ImagePolicy) DeepCopyInto(out *ImagePolicy) {
	*out = *p
	p.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Namespaces = slices.Clone(p.Spec.Namespaces)
	out.Spec.NamespaceSelector = p.Spec.NamespaceSelector.DeepCopy()
	out.Spec.Allow = slices.Clone(p.Spec.Allow)
	out.Spec.Deny = slices.Clone(p.Spec.Deny)
}

// DeepCopy returns a copy that shares nothing with p.
func (p *ImagePolicy) DeepCopy() *ImagePolicy {
	if p == nil {
		return nil
	}
	out := new(ImagePolicy)
	p.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (p *ImagePolicy) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *ImagePolicyList) DeepCopyObject() runtime.Object {
	out := &ImagePolicyList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]ImagePolicy, len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject implements runtime.Object.
func (o *Shell) DeepCopyObject() runtime.Object {
	out := *o
	out.Command = slices.Clone(o.Command)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (o *Exec) DeepCopyObject() runtime.Object {
	out := *o
	out.Command = slices.Clone(o.Command)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (o *Files) DeepCopyObject() runtime.Object { out := *o; return &out }

// DeepCopyObject implements runtime.Object.
func (o *Evidence) DeepCopyObject() runtime.Object { out := *o; return &out }

// DeepCopyObject implements runtime.Object.
func (o *Sessions) DeepCopyObject() runtime.Object { out := *o; return &out }

// DeepCopyObject implements runtime.Object.
func (p *Pod) DeepCopyObject() runtime.Object {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &out
}

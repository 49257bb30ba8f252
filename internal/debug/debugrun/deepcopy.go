// SPDX-License-Identifier: Apache-2.0

package debugrun

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto writes a copy of r that shares nothing with it.
func (r *DebugRun) DeepCopyInto(out *DebugRun) {
	*out = *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Command = slices.Clone(r.Spec.Command)
	out.Spec.Args = slices.Clone(r.Spec.Args)
	out.Status.StartedAt = copied(r.Status.StartedAt)
	out.Status.FinishedAt = copied(r.Status.FinishedAt)
	if code := r.Status.ExitCode; code != nil {
		out.Status.ExitCode = new(*code)
	}
}

func copied(t *metav1.Time) *metav1.Time { return t.DeepCopy() }

// DeepCopy returns a copy that shares nothing with r.
func (r *DebugRun) DeepCopy() *DebugRun {
	if r == nil {
		return nil
	}
	out := new(DebugRun)
	r.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (r *DebugRun) DeepCopyObject() runtime.Object { return r.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *DebugRunList) DeepCopyObject() runtime.Object {
	out := &DebugRunList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]DebugRun, len(l.Items))
	}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

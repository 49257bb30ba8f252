// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func nodeRules() rules {
	return typed[*corev1.Node]{
		validate: func(n *corev1.Node) field.ErrorList {
			return append(validateMeta(n, false, validation.NameIsDNSSubdomain), validateTaints(n)...)
		},
		prepareUpdate: func(n, old *corev1.Node) { n.Status = old.Status },
		validateUpdate: func(n, old *corev1.Node) field.ErrorList {
			errs := validateTaints(n)
			path := field.NewPath("spec")
			if old.Spec.ProviderID != "" && n.Spec.ProviderID != old.Spec.ProviderID {
				errs = append(errs, field.Forbidden(path.Child("providerID"), "may not be changed once it is set"))
			}
			if old.Spec.PodCIDR != "" && n.Spec.PodCIDR != old.Spec.PodCIDR {
				errs = append(errs, field.Forbidden(path.Child("podCIDR"), "may not be changed once it is set"))
			}
			return errs
		},
		reset: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func nodeStatusRules() rules {
	return typed[*corev1.Node]{
		prepareUpdate: func(n, old *corev1.Node) { n.Spec = old.Spec },
		validateUpdate: func(n, _ *corev1.Node) (errs field.ErrorList) {
			seen := map[corev1.NodeAddress]bool{}
			for i, a := range n.Status.Addresses {
				if seen[a] {
					errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), a))
				}
				seen[a] = true
			}
			return errs
		},
		reset: fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

func validateTaints(n *corev1.Node) (errs field.ErrorList) {
	path := field.NewPath("spec", "taints")
	type key struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[key]bool{}
	for i, t := range n.Spec.Taints {
		at := path.Index(i)
		if t.Key == "" {
			errs = append(errs, field.Required(at.Child("key"), ""))
		}
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect,
				[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
		}
		if k := (key{t.Key, t.Effect}); seen[k] {
			errs = append(errs, field.Duplicate(at, t))
		} else {
			seen[k] = true
		}
	}
	return errs
}

func nodeFields(obj runtime.Object) fields.Set {
	return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
}

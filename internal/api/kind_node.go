// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/validation"
)

func nodeRules() rules {
	return typed[*corev1.Node]{
		validate:       validation.ValidateNode,
		prepareUpdate:  func(n, old *corev1.Node) { n.Status = old.Status },
		validateUpdate: validation.ValidateNodeUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.rules()
}

func nodeStatusRules() rules {
	return typed[*corev1.Node]{
		prepareUpdate:  func(n, old *corev1.Node) { n.Spec = old.Spec },
		validateUpdate: validation.ValidateNodeUpdate,
		reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.rules()
}

func nodeFields(obj runtime.Object) fields.Set {
	return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
}

// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

func nodeRules() registry.Rules {
	return registry.Typed[*corev1.Node]{
		Validate:       validation.ValidateNode,
		PrepareUpdate:  func(n, old *corev1.Node) { n.Status = old.Status },
		ValidateUpdate: validation.ValidateNodeUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func nodeStatusRules() registry.Rules {
	return registry.Typed[*corev1.Node]{
		PrepareUpdate:  func(n, old *corev1.Node) { n.Spec = old.Spec },
		ValidateUpdate: validation.ValidateNodeUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

func nodeFields(obj runtime.Object) fields.Set {
	return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
}

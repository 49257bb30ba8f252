// SPDX-License-Identifier: Apache-2.0

package kinds

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
		PrepareCreate:  dropDynamicConfig,
		Validate:       validation.ValidateNode,
		PrepareUpdate:  func(n, old *corev1.Node) { n.Status, n.Spec.ConfigSource = old.Status, nil },
		ValidateUpdate: validation.ValidateNodeUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}.Rules()
}

func nodeStatusRules() registry.Rules {
	return registry.Typed[*corev1.Node]{
		PrepareUpdate:  func(n, old *corev1.Node) { n.Spec, n.Status.Config = old.Spec, nil },
		ValidateUpdate: validation.ValidateNodeUpdate,
		Reset:          fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}.Rules()
}

// dropDynamicConfig takes away what asked kubelets to configure themselves by a ConfigMap: nothing heeds it any more.
func dropDynamicConfig(n *corev1.Node) {
	n.Spec.ConfigSource, n.Status.Config = nil, nil
}

func nodeFields(obj runtime.Object) fields.Set {
	return fields.Set{"spec.unschedulable": strconv.FormatBool(obj.(*corev1.Node).Spec.Unschedulable)}
}

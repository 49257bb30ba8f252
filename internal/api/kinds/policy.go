// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/validation"
)

// policyKinds are those that admission goes by.
func policyKinds() []*registry.Kind {
	return []*registry.Kind{
		{GV: nodev1.SchemeGroupVersion, Name: "RuntimeClass", Plural: "runtimeclasses", Singular: "runtimeclass",
			Object: registry.New[nodev1.RuntimeClass], List: registry.New[nodev1.RuntimeClassList],
			Rules: runtimeClassRules()},
		{GV: schedulingv1.SchemeGroupVersion, Name: "PriorityClass", Plural: "priorityclasses",
			Singular: "priorityclass", Short: []string{"pc"}, Object: registry.New[schedulingv1.PriorityClass],
			List: registry.New[schedulingv1.PriorityClassList], Rules: priorityClassRules()},
		{GV: imagepolicy.GroupVersion(), Name: "ImagePolicy", Plural: imagepolicy.Resource, Singular: "imagepolicy",
			Short: []string{"imgpol"}, Object: registry.New[imagepolicy.ImagePolicy],
			List: registry.New[imagepolicy.ImagePolicyList], Rules: imagePolicyRules()},
	}
}

func runtimeClassRules() registry.Rules {
	return registry.Typed[*nodev1.RuntimeClass]{
		Validate:       validation.ValidateRuntimeClass,
		ValidateUpdate: validation.ValidateRuntimeClassUpdate,
	}.Rules()
}

func priorityClassRules() registry.Rules {
	return registry.Typed[*schedulingv1.PriorityClass]{
		PrepareCreate:  func(p *schedulingv1.PriorityClass) { p.Generation = 1 },
		Validate:       validation.ValidatePriorityClass,
		ValidateUpdate: validation.ValidatePriorityClassUpdate,
	}.Rules()
}

func imagePolicyRules() registry.Rules {
	return registry.Typed[*imagepolicy.ImagePolicy]{
		PrepareCreate: func(p *imagepolicy.ImagePolicy) { p.Generation = 1 },
		Validate:      imagepolicy.Validate,
		PrepareUpdate: func(p, old *imagepolicy.ImagePolicy) {
			if !p.Spec.Equal(&old.Spec) {
				p.Generation++
			}
		},
		ValidateUpdate: imagepolicy.ValidateUpdate,
	}.Rules()
}

// SPDX-License-Identifier: Apache-2.0

package api

import (
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
	"github.com/wherryproject/wherry/internal/api/validation"
)

// policyKinds are those that admission goes by.
func policyKinds() []*kind {
	return []*kind{
		{gv: nodev1.SchemeGroupVersion, name: "RuntimeClass", plural: "runtimeclasses", singular: "runtimeclass",
			object: of[nodev1.RuntimeClass], list: of[nodev1.RuntimeClassList],
			rules: runtimeClassRules()},
		{gv: schedulingv1.SchemeGroupVersion, name: "PriorityClass", plural: "priorityclasses", singular: "priorityclass", short: []string{"pc"},
			object: of[schedulingv1.PriorityClass], list: of[schedulingv1.PriorityClassList],
			rules: priorityClassRules()},
		{gv: imagepolicy.GroupVersion(), name: "ImagePolicy", plural: imagepolicy.Resource, singular: "imagepolicy", short: []string{"imgpol"},
			object: of[imagepolicy.ImagePolicy], list: of[imagepolicy.ImagePolicyList],
			rules: imagePolicyRules()},
	}
}

func runtimeClassRules() rules {
	return typed[*nodev1.RuntimeClass]{
		validate:       validation.ValidateRuntimeClass,
		validateUpdate: validation.ValidateRuntimeClassUpdate,
	}.rules()
}

func priorityClassRules() rules {
	return typed[*schedulingv1.PriorityClass]{
		prepareCreate:  func(p *schedulingv1.PriorityClass) { p.Generation = 1 },
		validate:       validation.ValidatePriorityClass,
		validateUpdate: validation.ValidatePriorityClassUpdate,
	}.rules()
}

func imagePolicyRules() rules {
	return typed[*imagepolicy.ImagePolicy]{
		prepareCreate: func(p *imagepolicy.ImagePolicy) { p.Generation = 1 },
		validate:      validation.ValidateImagePolicy,
		prepareUpdate: func(p, old *imagepolicy.ImagePolicy) {
			if !p.Spec.Equal(&old.Spec) {
				p.Generation++
			}
		},
		validateUpdate: validation.ValidateImagePolicyUpdate,
	}.rules()
}

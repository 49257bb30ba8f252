// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/podspec"
)

// podTemplateRules are those of PodTemplate. Nothing here makes pods of one: clients do, who read it.
func podTemplateRules() registry.Rules {
	template := func(t *corev1.PodTemplate) field.ErrorList {
		return podspec.ValidateTemplate(&t.Template, field.NewPath("template"))
	}
	return registry.Typed[*corev1.PodTemplate]{
		PrepareCreate: func(t *corev1.PodTemplate) { t.Generation = 1 },
		Validate: func(t *corev1.PodTemplate) field.ErrorList {
			return append(apivalidation.ValidateObjectMeta(&t.ObjectMeta, true, apivalidation.NameIsDNSSubdomain,
				field.NewPath("metadata")), template(t)...)
		},
		PrepareUpdate: func(t, old *corev1.PodTemplate) {
			if !equality.Semantic.DeepEqual(t.Template, old.Template) {
				t.Generation = old.Generation + 1
			}
		},
		ValidateUpdate: func(t, old *corev1.PodTemplate) field.ErrorList {
			return append(apivalidation.ValidateObjectMetaUpdate(&t.ObjectMeta, &old.ObjectMeta,
				field.NewPath("metadata")), template(t)...)
		},
		Warn: func(t, old *corev1.PodTemplate) []string {
			if old != nil && old.Generation == t.Generation {
				return nil
			}
			return podspec.TemplateWarnings(&t.Template, field.NewPath("template"))
		},
	}.Rules()
}

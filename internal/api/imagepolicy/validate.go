// SPDX-License-Identifier: Apache-2.0

package imagepolicy

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
	"github.com/wherryproject/wherry/internal/imagename"
)

// Validate checks that a policy says something, and that what it says can be understood.
func Validate(p *ImagePolicy) field.ErrorList {
	all := rules.ClusterMeta(&p.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	return append(all, imagePolicySpec(&p.Spec, field.NewPath("spec"))...)
}

// ValidateUpdate is Validate for a changed one.
func ValidateUpdate(now, was *ImagePolicy) field.ErrorList {
	return append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), Validate(now)...)
}

func imagePolicySpec(s *ImagePolicySpec, path *field.Path) rules.Errs {
	all := rules.OneOf(path.Child("action"), s.Action, Enforce, Warn, Audit)
	if len(s.Namespaces) > 0 && s.NamespaceSelector != nil {
		all = append(all, field.Forbidden(path.Child("namespaceSelector"), "may not be given together with namespaces"))
	}
	if s.NamespaceSelector != nil {
		all = append(all, metavalidation.ValidateLabelSelector(s.NamespaceSelector,
			metavalidation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))...)
	}
	seen := sets.New[string]()
	for i, name := range s.Namespaces {
		at := path.Child("namespaces").Index(i)
		all = append(all, rules.Valid(at, name, apivalidation.ValidateNamespaceName(name, false))...)
		if seen.Has(name) {
			all = append(all, field.Duplicate(at, name))
		}
		seen.Insert(name)
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"allow", s.Allow}, {"deny", s.Deny}} {
		for i, p := range list.patterns {
			if err := imagename.Check(p); err != nil {
				all = append(all, field.Invalid(path.Child(list.field).Index(i), p, err.Error()))
			}
		}
	}
	if len(s.Allow)+len(s.Deny) == 0 && !s.RequireDigest {
		all = append(all, field.Required(path.Child("allow"),
			"a policy has at least one of allow, deny and requireDigest"))
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package validation

import (
	nodev1 "k8s.io/api/node/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
	"github.com/wherryproject/wherry/internal/podspec"
)

// ValidateRuntimeClass checks the handler's name, and what pods of the class are given.
func ValidateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	all := rules.ClusterMeta(&c.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	handler := field.NewPath("handler")
	if c.Handler == "" {
		all = append(all, field.Required(handler, ""))
	} else {
		all = append(all, rules.Valid(handler, c.Handler, validation.IsDNS1123Label(c.Handler))...)
	}
	if o := c.Overhead; o != nil {
		all = append(all, podspec.ValidateAmounts(o.PodFixed, podspec.ContainerResourceName,
			field.NewPath("overhead", "podFixed"))...)
		all = append(all, podspec.HugePagesInCompany(o.PodFixed, field.NewPath("overhead"))...)
	}
	if s := c.Scheduling; s != nil {
		path := field.NewPath("scheduling")
		all = append(all, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
		all = append(all, podspec.ValidateTolerations(s.Tolerations, path.Child("tolerations"))...)
		for i, t := range s.Tolerations {
			for _, other := range s.Tolerations[:i] {
				if t == other || t.MatchToleration(&other) {
					all = append(all, field.Duplicate(path.Child("tolerations").Index(i), t))
					break
				}
			}
		}
	}
	return all
}

// ValidateRuntimeClassUpdate also keeps the handler: pods run with it.
func ValidateRuntimeClassUpdate(now, was *nodev1.RuntimeClass) field.ErrorList {
	all := append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidateRuntimeClass(now)...)
	return append(all, rules.Immutable(field.NewPath("handler"), now.Handler, was.Handler)...)
}

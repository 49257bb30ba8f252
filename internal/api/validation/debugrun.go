// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// ValidateDebugRun checks a record: it says what was run, in which pod, by whom.
func ValidateDebugRun(r *debugrun.DebugRun) field.ErrorList {
	all := rules.Meta(&r.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	spec := field.NewPath("spec")
	all = append(all, rules.OneOf(spec.Child("kind"), r.Spec.Kind, debugrun.EphemeralContainer, debugrun.ImageExec)...)
	for _, f := range []struct {
		path  *field.Path
		value string
	}{
		{spec.Child("pod", "name"), r.Spec.Pod.Name}, {spec.Child("pod", "uid"), string(r.Spec.Pod.UID)},
		{spec.Child("image"), r.Spec.Image}, {spec.Child("user"), r.Spec.User},
	} {
		if f.value == "" {
			all = append(all, field.Required(f.path, ""))
		}
	}
	if r.Spec.Kind == debugrun.EphemeralContainer && r.Spec.Container == "" {
		all = append(all, field.Required(spec.Child("container"), ""))
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// gatesUpdate: gates may only go (KEP-3521), and while there are any the choice of nodes may only get
// narrower (KEP-3838).
func gatesUpdate(newPod, oldPod *corev1.Pod, path *field.Path) (all errs) {
	now, was := &newPod.Spec, &oldPod.Spec
	for i, gate := range now.SchedulingGates {
		if !slices.Contains(was.SchedulingGates, gate) {
			all = append(all, field.Forbidden(path.Child("schedulingGates").Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	if len(was.SchedulingGates) == 0 {
		return all
	}
	for key, value := range was.NodeSelector {
		if got, ok := now.NodeSelector[key]; !ok || got != value {
			all = append(all, field.Invalid(path.Child("nodeSelector"), now.NodeSelector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	return append(all, nodeTermsUpdate(requiredNodeTerms(now), requiredNodeTerms(was),
		path.Child("affinity", "nodeAffinity", requiredTerms, "nodeSelectorTerms"))...)
}

func requiredNodeTerms(spec *corev1.PodSpec) []corev1.NodeSelectorTerm {
	a := spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// nodeTermsUpdate: terms are alternatives, so neither more nor fewer; within one, requirements may be added.
func nodeTermsUpdate(now, was []corev1.NodeSelectorTerm, path *field.Path) (all errs) {
	if len(was) == 0 {
		return nil
	}
	if len(now) != len(was) {
		return errs{field.Invalid(path, now, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	for i := range was {
		if len(was[i].MatchExpressions)+len(was[i].MatchFields) == 0 &&
			len(now[i].MatchExpressions)+len(now[i].MatchFields) > 0 {
			all = append(all, field.Invalid(path.Index(i), now[i],
				"a term that matches nothing may not begin to match"))
			continue
		}
		if !hasAll(now[i].MatchExpressions, was[i].MatchExpressions) ||
			!hasAll(now[i].MatchFields, was[i].MatchFields) {
			all = append(all, field.Invalid(path.Index(i), now[i],
				"only additions are allowed (no mutations or deletions)"))
		}
	}
	return all
}

func hasAll(now, was []corev1.NodeSelectorRequirement) bool {
	for _, old := range was {
		if !slices.ContainsFunc(now,
			func(r corev1.NodeSelectorRequirement) bool { return equality.Semantic.DeepEqual(r, old) }) {
			return false
		}
	}
	return true
}

// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func affinity(a *corev1.Affinity, path *field.Path) (all errs) {
	if a == nil {
		return nil
	}
	if n := a.NodeAffinity; n != nil {
		all = append(all, nodeAffinity(n, path.Child("nodeAffinity"))...)
	}
	if p := a.PodAffinity; p != nil {
		all = append(all, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		all = append(all, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return all
}

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func nodeAffinity(n *corev1.NodeAffinity, path *field.Path) (all errs) {
	if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		at := path.Child(requiredTerms, "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			all = append(all, field.Required(at, "must have at least one node selector term"))
		}
		for i := range r.NodeSelectorTerms {
			all = append(all, nodeTerm(&r.NodeSelectorTerms[i], at.Index(i))...)
		}
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		term := &n.PreferredDuringSchedulingIgnoredDuringExecution[i]
		at := path.Child(preferredTerms).Index(i)
		all = append(all, weight(at.Child("weight"), term.Weight)...)
		all = append(all, nodeTerm(&term.Preference, at.Child("preference"))...)
	}
	return all
}

func weight(path *field.Path, w int32) errs {
	if w <= 0 || w > 100 {
		return errs{field.Invalid(path, w, "must be in the range 1-100")}
	}
	return nil
}

func nodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) (all errs) {
	for i := range term.MatchExpressions {
		all = append(all, nodeExpression(&term.MatchExpressions[i], path.Child("matchExpressions").Index(i))...)
	}
	for i := range term.MatchFields {
		all = append(all, nodeField(&term.MatchFields[i], path.Child("matchFields").Index(i))...)
	}
	return all
}

func nodeExpression(r *corev1.NodeSelectorRequirement, path *field.Path) (all errs) {
	values := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			all = append(all, field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			all = append(all,
				field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			all = append(all, field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		all = append(all, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	all = append(all, unversioned.ValidateLabelName(r.Key, path.Child("key"))...)
	if r.Operator == corev1.NodeSelectorOpGt || r.Operator == corev1.NodeSelectorOpLt {
		return all
	}
	for i, v := range r.Values {
		all = append(all, labelValue(values.Index(i), v)...)
	}
	return all
}

// nodeField: only a node's name can be asked for.
func nodeField(r *corev1.NodeSelectorRequirement, path *field.Path) (all errs) {
	values := path.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			all = append(all,
				field.Required(values,
					"must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		all = append(all, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if r.Key != nodeNameField {
		return append(all, field.Invalid(path.Child("key"), r.Key, "not a valid field selector key"))
	}
	for i, v := range r.Values {
		all = append(all, dnsSubdomain(values.Index(i), v)...)
	}
	return all
}

const nodeNameField = "metadata.name"

func podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm,
	path *field.Path) (all errs) {
	for i := range required {
		all = append(all, podTerm(&required[i], path.Child(requiredTerms).Index(i))...)
	}
	for i := range preferred {
		at := path.Child(preferredTerms).Index(i)
		all = append(all, weight(at.Child("weight"), preferred[i].Weight)...)
		all = append(all, podTerm(&preferred[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return all
}

func podTerm(t *corev1.PodAffinityTerm, path *field.Path) errs {
	all := selector(t.LabelSelector, path.Child("labelSelector"))
	all = append(all, selector(t.NamespaceSelector, path.Child("namespaceSelector"))...)
	for i, ns := range t.Namespaces {
		all = append(all, valid(path.Child("namespaces").Index(i), ns, validation.IsDNS1123Label(ns))...)
	}
	all = append(all, topologyKey(path.Child("topologyKey"), t.TopologyKey)...)
	all = append(all, affinityKeys(t, path)...)
	return all
}

// affinityKeys: the keys whose values come from the Pod itself; one key cannot both match and not match.
func affinityKeys(t *corev1.PodAffinityTerm, path *field.Path) errs {
	all := matchKeys(t.MatchLabelKeys, t.LabelSelector, path.Child("matchLabelKeys"))
	all = append(all, matchKeys(t.MismatchLabelKeys, t.LabelSelector, path.Child("mismatchLabelKeys"))...)
	for i, key := range t.MismatchLabelKeys {
		if slices.Contains(t.MatchLabelKeys, key) {
			all = append(all, field.Invalid(path.Child("mismatchLabelKeys").Index(i), key,
				"exists in both matchLabelKeys and mismatchLabelKeys"))
		}
	}
	return all
}

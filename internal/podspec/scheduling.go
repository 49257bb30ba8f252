// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scheduling: everything that says where and when the Pod may be placed.
func (s *scope) scheduling() errs {
	spec, path := s.spec, s.path
	all := unversioned.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))
	all = append(all, required(path.Child("schedulerName"), spec.SchedulerName)...)
	all = append(all, ValidateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	all = append(all, affinity(spec.Affinity, path.Child("affinity"))...)
	all = append(all, spreadConstraints(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	all = append(all, schedulingGates(spec.SchedulingGates, path.Child("schedulingGates"))...)
	all = append(all, objectName(path.Child("priorityClassName"), spec.PriorityClassName)...)
	all = append(all, oneOfIfSet(path.Child("preemptionPolicy"), spec.PreemptionPolicy,
		corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	if spec.RuntimeClassName != nil {
		all = append(all, dnsSubdomain(path.Child("runtimeClassName"), *spec.RuntimeClassName)...)
	}
	if g := spec.SchedulingGroup; g != nil {
		at := path.Child("schedulingGroup")
		if g.PodGroupName == nil {
			all = append(all, field.Required(at, "must specify one of: `podGroupName`"))
		} else {
			all = append(all, dnsSubdomain(at.Child("podGroupName"), *g.PodGroupName)...)
		}
	}
	return all
}

// ValidateTolerations checks what a Pod, or its runtime class, tolerates.
func ValidateTolerations(list []corev1.Toleration, path *field.Path) (all field.ErrorList) {
	for i, t := range list {
		at := path.Index(i)
		if t.Key != "" {
			all = append(all, unversioned.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			all = append(all, field.Invalid(at.Child("operator"), t.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			all = append(all, field.Invalid(at.Child("effect"), t.Effect,
				"effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "": // an empty operator means Equal
			all = append(all, labelValue(at.Child("operator"), t.Value)...)
		case corev1.TolerationOpExists:
			if t.Value != "" {
				all = append(all, field.Invalid(at.Child("operator"), t.Value,
					"value must be empty when `operator` is 'Exists'"))
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt:
			all = append(all, decimal(at.Child("value"), t.Value)...)
		default:
			all = append(all, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt,
			}))
		}
		if t.Effect != "" {
			all = append(all, TaintEffect(at.Child("effect"), t.Effect)...)
		}
	}
	return all
}

// TaintEffect: one of the three.
func TaintEffect(path *field.Path, effect corev1.TaintEffect) field.ErrorList {
	return oneOf(path, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute)
}

// spreadConstraints: how pods are spread over the machines.
func spreadConstraints(list []corev1.TopologySpreadConstraint, path *field.Path) (all errs) {
	pairs := seen{}
	for i := range list {
		c, at := &list[i], path.Index(i)
		if c.MaxSkew <= 0 {
			all = append(all, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		all = append(all, topologyKey(at.Child("topologyKey"), c.TopologyKey)...)
		all = append(all, oneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule,
			corev1.ScheduleAnyway)...)
		all = append(all, pairs.unique(at.Child("{topologyKey, whenUnsatisfiable}"),
			fmt.Sprintf("{%v, %v}", c.TopologyKey, c.WhenUnsatisfiable))...)
		if n := c.MinDomains; n != nil {
			if *n <= 0 {
				all = append(all, field.Invalid(at.Child("minDomains"), *n, "must be greater than zero"))
			}
			if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
				all = append(all, field.Invalid(at.Child("minDomains"), *n,
					"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"))
			}
		}
		all = append(all, oneOfIfSet(at.Child("nodeAffinityPolicy"), c.NodeAffinityPolicy,
			corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor)...)
		all = append(all, oneOfIfSet(at.Child("nodeTaintsPolicy"), c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore,
			corev1.NodeInclusionPolicyHonor)...)
		all = append(all, selector(c.LabelSelector, at.Child("labelSelector"))...)
		all = append(all, matchKeys(c.MatchLabelKeys, c.LabelSelector, at.Child("matchLabelKeys"))...)
	}
	return all
}

// matchKeys: keys whose values come from the Pod itself; they need a selector and must not be in it twice.
func matchKeys(keys []string, s *metav1.LabelSelector, path *field.Path) (all errs) {
	if len(keys) > 0 && s == nil {
		return errs{field.Forbidden(path, "must not be specified when labelSelector is not set")}
	}
	inSelector := map[string]bool{}
	if s != nil {
		for key := range s.MatchLabels {
			inSelector[key] = true
		}
		for _, e := range s.MatchExpressions {
			inSelector[e.Key] = true
		}
	}
	for i, key := range keys {
		all = append(all, unversioned.ValidateLabelName(key, path.Index(i))...)
		if inSelector[key] {
			all = append(all, field.Invalid(path.Index(i), key, "exists in both "+fieldName(path)+" and labelSelector"))
		}
	}
	return all
}

func selector(s *metav1.LabelSelector, path *field.Path) errs {
	return unversioned.ValidateLabelSelector(s, unversioned.LabelSelectorValidationOptions{}, path)
}

func topologyKey(path *field.Path, key string) errs {
	if key == "" {
		return errs{field.Required(path, "can not be empty")}
	}
	return unversioned.ValidateLabelName(key, path)
}

func schedulingGates(list []corev1.PodSchedulingGate, path *field.Path) (all errs) {
	names := seen{}
	for i, g := range list {
		all = append(all, qualifiedName(path.Index(i), g.Name)...)
		all = append(all, names.unique(path.Index(i), g.Name)...)
	}
	return all
}

// decimal: a 64-bit number in its shortest form.
func decimal(path *field.Path, value string) errs {
	digits := strings.TrimPrefix(value, "-")
	switch {
	case digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 19:
		return errs{field.Invalid(path, value, "must be a valid decimal integer in canonical form")}
	case digits != "0" && digits[0] == '0' || value == "-0":
		return errs{field.Invalid(path, value, "must be a valid decimal integer in canonical form")}
	}
	return nil
}

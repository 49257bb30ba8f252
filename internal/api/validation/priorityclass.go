// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherryproject/wherry/internal/api/validation/rules"
)

const (
	// SystemPrefix begins the names of the priority classes that every cluster has; nobody may make others.
	SystemPrefix = "system-"
	// maxUserPriority is the largest value of a class that is not the system's (Kubernetes, "Pod Priority and
	// Preemption").
	maxUserPriority = 1000000000
)

// SystemPriorityClasses are the two classes that every cluster has.
func SystemPriorityClasses() []schedulingv1.PriorityClass {
	lower := corev1.PreemptLowerPriority
	return []schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: SystemPrefix + "cluster-critical"}, Value: 2 * maxUserPriority,
			PreemptionPolicy: &lower,
			Description:      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
		{ObjectMeta: metav1.ObjectMeta{Name: SystemPrefix + "node-critical"}, Value: 2*maxUserPriority + 1000,
			PreemptionPolicy: &lower,
			Description:      "Used for system critical pods that must not be moved from their current node."},
	}
}

// SetDefaultsPriorityClass lets pods of a class go before others.
func SetDefaultsPriorityClass(p *schedulingv1.PriorityClass) {
	rules.OrPointTo(&p.PreemptionPolicy, corev1.PreemptLowerPriority)
}

// ValidatePriorityClass keeps the system's names and values for the system. That only one class is the default for all
// is for admission to see to.
func ValidatePriorityClass(p *schedulingv1.PriorityClass) field.ErrorList {
	all := rules.ClusterMeta(&p.ObjectMeta, apivalidation.NameIsDNSSubdomain)
	switch {
	case strings.HasPrefix(p.Name, SystemPrefix):
		all = append(all, systemClass(p)...)
	case p.Value > maxUserPriority:
		all = append(all, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", maxUserPriority)))
	}
	return append(all, rules.OneOfIfSet(field.NewPath("preemptionPolicy"), p.PreemptionPolicy,
		corev1.PreemptLowerPriority, corev1.PreemptNever)...)
}

func systemClass(p *schedulingv1.PriorityClass) (all rules.Errs) {
	for _, known := range SystemPriorityClasses() {
		if known.Name != p.Name {
			continue
		}
		if p.Value != known.Value {
			all = append(all, field.Invalid(field.NewPath("value"), p.Value,
				fmt.Sprintf("the value of %s is %d", p.Name, known.Value)))
		}
		if p.GlobalDefault {
			all = append(all, field.Invalid(field.NewPath("globalDefault"), true,
				"a class of the system is not the default for other pods"))
		}
		return all
	}
	return rules.Errs{field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("priority class names with %q prefix are reserved for system use only", SystemPrefix))}
}

// ValidatePriorityClassUpdate also keeps what pods have got from the class already.
func ValidatePriorityClassUpdate(now, was *schedulingv1.PriorityClass) field.ErrorList {
	all := append(rules.MetaUpdate(&now.ObjectMeta, &was.ObjectMeta), ValidatePriorityClass(now)...)
	if now.Value != was.Value {
		all = append(all, field.Forbidden(field.NewPath("value"), "may not be changed in an update"))
	}
	return append(all, rules.Immutable(field.NewPath("preemptionPolicy"), now.PreemptionPolicy,
		was.PreemptionPolicy)...)
}

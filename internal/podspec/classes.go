// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// SetPriority gives a Pod the priority of its class, or of the default class if it names none; class is nil if there is
// none either, which is priority 0. What the Pod says itself must not differ.
func SetPriority(pod *corev1.Pod, class *schedulingv1.PriorityClass) error {
	priority, policy := int32(0), corev1.PreemptLowerPriority
	if class != nil {
		priority = class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	spec := &pod.Spec
	if spec.Priority != nil && *spec.Priority != priority {
		return fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *spec.Priority, priority)
	}
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != policy {
		return fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *spec.PreemptionPolicy, policy)
	}
	if class != nil {
		spec.PriorityClassName = class.Name
	}
	spec.Priority, spec.PreemptionPolicy = &priority, &policy
	return nil
}

// ApplyRuntimeClass gives a Pod the overhead of its runtime class and where pods of the class can run; class is nil if
// the Pod names none. What the Pod says itself must fit.
func ApplyRuntimeClass(pod *corev1.Pod, class *nodev1.RuntimeClass) error {
	if class != nil && class.Overhead != nil && pod.Spec.Overhead == nil {
		pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
	}
	if err := CheckOverhead(pod, class); err != nil {
		return err
	}
	if class == nil || class.Scheduling == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		want := class.Scheduling.NodeSelector[key]
		if have, ok := pod.Spec.NodeSelector[key]; ok && have != want {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s",
				key, want, key, have)
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = want
	}
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(pod.Spec.Tolerations,
			func(have corev1.Toleration) bool { return equality.Semantic.DeepEqual(have, t) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, *t.DeepCopy())
		}
	}
	return nil
}

// CheckOverhead says whether a Pod's overhead is that of its runtime class; class is nil if the Pod names none.
func CheckOverhead(pod *corev1.Pod, class *nodev1.RuntimeClass) error {
	switch {
	case class == nil && len(pod.Spec.Overhead) > 0:
		return errors.New("overhead is set without a runtimeClassName: leave it out")
	case class == nil:
		return nil
	case class.Overhead == nil && len(pod.Spec.Overhead) > 0:
		return fmt.Errorf("overhead is set, but RuntimeClass %q has none: leave it out", class.Name)
	case class.Overhead != nil && !equality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed):
		return fmt.Errorf("overhead differs from that of RuntimeClass %q: leave it out and it will be set", class.Name)
	}
	return nil
}

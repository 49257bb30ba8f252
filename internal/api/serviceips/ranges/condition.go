// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/networking"
)

// Condition is what a ServiceCIDR says of itself, in Kubernetes' words.
func Condition(leaving bool) metav1.Condition {
	if leaving {
		return metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionFalse,
			Reason: networkingv1.ServiceCIDRReasonTerminating,
			Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new " +
				"ServiceCIDR"}
	}
	return metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue,
		Message: "Kubernetes Service CIDR is ready"}
}

// Says reports whether a ServiceCIDR has a condition already.
func Says(o *networking.ServiceCIDR, c metav1.Condition) bool {
	have := meta.FindStatusCondition(o.Status.Conditions, c.Type)
	return have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message
}

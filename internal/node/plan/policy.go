// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// restarts tells whether a main container, or an init that failed, that ended with this exit code, and failed or not,
// is started again (PL-02, PL-16): by the first of its rules that names the code, else by its own restart policy, else
// by the pod's (KEP-5307).
func restarts(pod *corev1.PodSpec, c *corev1.Container, code int32, failed bool) bool {
	for i := range c.RestartPolicyRules {
		if r := &c.RestartPolicyRules[i]; names(r.ExitCodes, code) {
			return r.Action == corev1.ContainerRestartRuleActionRestart ||
				r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		}
	}
	policy := pod.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return failed
	}
	return true
}

// names tells whether a rule speaks of an exit code.
func names(r *corev1.ContainerRestartRuleOnExitCodes, code int32) bool {
	if r == nil {
		return false
	}
	return slices.Contains(r.Values, code) == (r.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn)
}

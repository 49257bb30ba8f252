// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestRestartRules: a container's own restart policy goes before the pod's, and its rules by exit code before that (PL-02).
func TestRestartRules(t *testing.T) {
	t.Parallel()
	s := shared(t)
	rule := func(op corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) []corev1.ContainerRestartRule {
		return []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes}}}
	}
	never, onFailure, always := ptr.To(corev1.ContainerRestartPolicyNever), ptr.To(corev1.ContainerRestartPolicyOnFailure), ptr.To(corev1.ContainerRestartPolicyAlways)
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	for name, c := range map[string]struct {
		pod     corev1.RestartPolicy
		own     *corev1.ContainerRestartPolicy
		rules   []corev1.ContainerRestartRule
		code    string
		restart bool
	}{
		"never-rule-42":        {corev1.RestartPolicyNever, never, rule(in, 41, 42), "42", true},
		"never-rule-other":     {corev1.RestartPolicyNever, never, rule(in, 41, 42), "1", false},
		"never-rule-not-in":    {corev1.RestartPolicyNever, never, rule(notIn, 0), "5", true},
		"always-own-never":     {corev1.RestartPolicyAlways, never, nil, "1", false},
		"never-own-onfailure":  {corev1.RestartPolicyNever, onFailure, nil, "1", true},
		"never-own-onfailure0": {corev1.RestartPolicyNever, onFailure, nil, "0", false},
		"never-own-always":     {corev1.RestartPolicyNever, always, nil, "0", true},
	} {
		t.Run("PL-02 "+name, func(t *testing.T) {
			t.Parallel()
			s := s.With(t)
			st := s.NewStage(t)
			main := st.Act("main", "-until", "-code", c.code)
			main.RestartPolicy, main.RestartPolicyRules = c.own, c.rules
			other := st.Act("other")
			pod := st.Pod(name, main, other)
			pod.Spec.RestartPolicy = c.pod
			s.Create(pod)
			st.Await("main", "up", 1)
			s.Wait(name, "run other", func(p *corev1.Pod) bool {
				o := Status(p, "other")
				return o != nil && o.State.Running != nil
			})
			st.Set("main", "go")
			if c.restart {
				st.Await("main", "start", 2)
				s.WaitRestarts(name, "main", 1)
			} else {
				s.Wait(name, "have main ended", func(p *corev1.Pod) bool { return Status(p, "main").State.Terminated != nil })
				st.Play().Happened("PL-02", "main", "start", 1)
			}
			p := s.Get(name)
			if p.Status.Phase != corev1.PodRunning || Status(p, "other").RestartCount != 0 {
				t.Errorf("PL-02 it is %s", summary(p))
			}
		})
	}
}

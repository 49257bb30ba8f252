// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// conditions sets the conditions that the node owns and keeps all others (PL-01).
func (v *view) conditions(s *corev1.PodStatus) {
	old := v.Pod.Status.Conditions
	over := s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
	own := []corev1.PodCondition{
		v.sandboxCondition(over),
	}
	if !v.rejected() {
		own = append(own, v.initializedCondition(s))
	}
	containers := v.containersReady(s, over)
	own = append(own, v.ready(containers), containers)
	own = append(own, condition(corev1.PodScheduled, true, "", "")) // it is here, whatever the scheduler last said
	if c := v.restartingCondition(); c != nil {
		own = append(own, *c)
	}
	if v.left.evicted {
		own = append(own, disruption(v.left.message))
	}
	own = append(own, v.resizeConditions(over)...)
	for i := range own {
		c := &own[i]
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = v.Pod.Generation
		}
		c.LastTransitionTime = stamp(v.Now)
		if was := find(old, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	for i := range old {
		if find(own, old[i].Type) == nil && !ofResize(old[i].Type) {
			own = append(own, old[i])
		}
	}
	s.Conditions = own
}

// ofResize tells whether a condition is there only while there is a resize.
func ofResize(t corev1.PodConditionType) bool {
	return t == corev1.PodResizePending || t == corev1.PodResizeInProgress
}

func condition(t corev1.PodConditionType, ok bool, reason, message string) corev1.PodCondition {
	c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if ok {
		c.Status = corev1.ConditionTrue
	}
	return c
}

func find(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

// sandboxCondition has the kubelet's reason and words. Of a pod that is over the words stay, whatever is removed of it
// after that.
func (v *view) sandboxCondition(over bool) corev1.PodCondition {
	if v.boxed() {
		return condition(corev1.PodReadyToStartContainers, true, "", "")
	}
	out := condition(corev1.PodReadyToStartContainers, false, "PodSandboxNotReady", "no pod sandbox exists")
	if v.box != nil {
		out.Message = "pod sandbox is not ready"
	}
	if was := find(v.Pod.Status.Conditions, out.Type); over && was != nil && was.Status == out.Status &&
		was.Reason == out.Reason {
		out.Message = was.Message
	}
	return out
}

func (v *view) initializedCondition(s *corev1.PodStatus) corev1.PodCondition {
	if s.Phase == corev1.PodSucceeded {
		return condition(corev1.PodInitialized, true, "PodCompleted", "")
	}
	if v.initialized() || v.over() && v.everBegun() {
		return condition(corev1.PodInitialized, true, "", "")
	}
	var missing []string
	for i := range v.gates {
		if !v.open(i) || v.lost() {
			missing = append(missing, v.gates[i].spec.Name)
		}
	}
	return condition(corev1.PodInitialized, false, "ContainersNotInitialized",
		fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(missing, " ")))
}

// containersReady counts mains and sidecars (SC-08).
func (v *view) containersReady(s *corev1.PodStatus, over bool) corev1.PodCondition {
	if over {
		reason := "PodCompleted"
		if s.Phase == corev1.PodFailed {
			reason = "PodFailed"
		}
		return condition(corev1.ContainersReady, false, reason, "")
	}
	var unready []string
	for i := range v.gates {
		if v.gates[i].kind == podspec.Sidecar && !s.InitContainerStatuses[i].Ready {
			unready = append(unready, v.gates[i].spec.Name)
		}
	}
	for i := range v.mains {
		if !s.ContainerStatuses[i].Ready {
			unready = append(unready, v.mains[i].spec.Name)
		}
	}
	if len(unready) > 0 {
		return condition(corev1.ContainersReady, false, "ContainersNotReady",
			fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " ")))
	}
	return condition(corev1.ContainersReady, true, "", "")
}

// ready is containersReady and every readiness gate of the spec.
func (v *view) ready(containers corev1.PodCondition) corev1.PodCondition {
	ready := containers
	ready.Type = corev1.PodReady
	if containers.Status != corev1.ConditionTrue {
		return ready
	}
	var missing []string
	for _, g := range v.Pod.Spec.ReadinessGates {
		c := find(v.Pod.Status.Conditions, g.ConditionType)
		switch {
		case c == nil:
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.",
				string(g.ConditionType)))
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v",
				string(g.ConditionType), c.Status))
		}
	}
	if len(missing) > 0 {
		return condition(corev1.PodReady, false, "ReadinessGatesNotReady", strings.Join(missing, ", "))
	}
	return ready
}

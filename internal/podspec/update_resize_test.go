// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func amountsOf(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// TestResize proves PL-14 and PL-23: what may be changed through pods/resize, and in which words the rest is refused.
func TestResize(t *testing.T) {
	const c0 = "spec.containers[0]"
	burstable := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amountsOf("cpu", "20m", "memory", "35Mi"),
			Limits: amountsOf("cpu", "30m", "memory", "45Mi")}
	}
	whole := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: amountsOf("cpu", "1"), Limits: amountsOf("cpu", "2")}
	}
	for name, row := range map[string]struct {
		before, do func(*corev1.Pod)
		want       string // "" = it is let in
	}{
		"cpu and memory": {burstable, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = amountsOf("cpu", "25m", "memory", "30Mi")
			p.Spec.Containers[0].Resources.Limits = amountsOf("cpu", "35m", "memory", "50Mi")
		}, ""},
		"a request is taken away": {burstable, func(p *corev1.Pod) { delete(p.Spec.Containers[0].Resources.Requests, "memory") },
			c0 + ".resources.requests: Forbidden: resource requests cannot be removed"},
		"a limit is taken away": {burstable, func(p *corev1.Pod) { delete(p.Spec.Containers[0].Resources.Limits, "cpu") },
			c0 + ".resources.limits: Forbidden: resource limits cannot be removed"},
		"another class": {burstable, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Limits.DeepCopy()
		}, "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing"},
		"another resource": {burstable, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("3")
		}, "spec: Forbidden: only cpu and memory resources are mutable"},
		"another name": {burstable, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "new" },
			c0 + ".name: Forbidden: containers may not be renamed or reordered on resize"},
		"another container": {burstable, func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, *p.Spec.Containers[0].DeepCopy())
			p.Spec.Containers[1].Name = "more"
		}, "spec.containers: Forbidden: containers may not be added or removed on resize"},
		"another policy": {burstable, func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "NotRequired"}}
		}, "spec: Forbidden: only cpu and memory resources are mutable"},
		"another image is no matter": {burstable, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }, ""},
		"requests above limits": {burstable, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
		}, c0 + ".resources.requests: Invalid value: \"1\": must be less than or equal to cpu limit of 30m"},
		"static": {func(p *corev1.Pod) {
			burstable(p)
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}, func(*corev1.Pod) {}, "static pods cannot be resized"},
		"a node that cannot": {func(p *corev1.Pod) {
			burstable(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, func(*corev1.Pod) {}, "spec: Forbidden: Pod running on node without support for resize"},
		"the pod as a whole": {whole, func(p *corev1.Pod) { p.Spec.Resources.Limits["cpu"] = resource.MustParse("3") }, ""},
		"of which a limit is taken away": {whole, func(p *corev1.Pod) { delete(p.Spec.Resources.Limits, "cpu") },
			"spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"},
		"of which nothing was sent": {whole, func(p *corev1.Pod) { p.Spec.Resources = nil }, ""},
	} {
		old := goodPod()
		old.Spec.InitContainers, old.Spec.Containers = nil, old.Spec.Containers[:1]
		row.before(old)
		old.Status.QOSClass = QOSClass(old)
		pod := old.DeepCopy()
		row.do(pod)
		KeepResize(pod, old)
		got := ""
		if errs := ValidateResize(pod, old); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: %s", name, got)
		}
		if pod.Spec.Containers[0].Image != old.Spec.Containers[0].Image && len(pod.Spec.Containers) == len(old.Spec.Containers) &&
			pod.Spec.Containers[0].Name == old.Spec.Containers[0].Name {
			t.Errorf("%s: the image has changed", name)
		}
	}
}

// SC-14, PL-14: while a resize is under way the larger of what is asked for, set aside and given counts; of one that the
// node cannot do only the latter two.
func TestEffectiveWhileResizing(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: amountsOf("cpu", "3")}}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: amountsOf("cpu", "1"),
		Resources: &corev1.ResourceRequirements{Requests: amountsOf("cpu", "2")}}}
	for reason, want := range map[string]string{"": "3", corev1.PodReasonDeferred: "3", corev1.PodReasonInfeasible: "2"} {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: reason}}
		if got := EffectiveRequests(pod); got.Cpu().String() != want {
			t.Errorf("%s: %s", reason, got.Cpu())
		}
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amountsOf("cpu", "4")}
	pod.Status.AllocatedResources, pod.Status.Resources = amountsOf("cpu", "5"), &corev1.ResourceRequirements{Requests: amountsOf("cpu", "6")}
	if got := EffectiveRequests(pod); got.Cpu().String() != "6" {
		t.Errorf("pod-level: %s", got.Cpu())
	}
}

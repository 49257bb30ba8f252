// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSetPriority proves EC-21 PL-13: a pod's priority is that of its class, and nothing else.
func TestSetPriority(t *testing.T) {
	high := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 7, PreemptionPolicy: new(corev1.PreemptNever)}
	old := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Value: -3}
	for _, row := range []struct {
		name   string
		class  *schedulingv1.PriorityClass
		says   *int32
		policy *corev1.PreemptionPolicy
		want   int32
		wants  corev1.PreemptionPolicy
		refuse string
	}{
		{"no class", nil, nil, nil, 0, corev1.PreemptLowerPriority, ""},
		{"a class", high, nil, nil, 7, corev1.PreemptNever, ""},
		{"a class without a policy", old, nil, nil, -3, corev1.PreemptLowerPriority, ""},
		{"what it says fits", high, new(int32(7)), new(corev1.PreemptNever), 7, corev1.PreemptNever, ""},
		{"another value", high, new(int32(8)), nil, 0, "", "the integer value of priority (8) must not be provided"},
		{"a value without a class", nil, new(int32(1)), nil, 0, "", "computed 0 from"},
		{"another policy", high, nil, new(corev1.PreemptLowerPriority), 0, "", "PreemptionPolicy (PreemptLowerPriority) must not be provided"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Priority: row.says, PreemptionPolicy: row.policy}}
		for range 2 { // admission may ask twice
			err := SetPriority(pod, row.class)
			if row.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), row.refuse) {
					t.Errorf("%s: %v", row.name, err)
				}
				break
			}
			if err != nil || *pod.Spec.Priority != row.want || *pod.Spec.PreemptionPolicy != row.wants || row.class != nil && pod.Spec.PriorityClassName != row.class.Name {
				t.Errorf("%s: %v, %+v", row.name, err, pod.Spec)
			}
		}
	}
}

// TestApplyRuntimeClass proves PL-15 SC-14: the overhead of a runtime class is the pod's, and counts with what it takes; where its
// pods can run is merged with what the pod says.
func TestApplyRuntimeClass(t *testing.T) {
	overhead := corev1.ResourceList{"cpu": quantity("100m"), "memory": quantity("64Mi")}
	noSchedule := corev1.Toleration{Key: "box", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	boxed := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "boxed"}, Handler: "runsc", Overhead: &nodev1.Overhead{PodFixed: overhead},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"box": "yes"}, Tolerations: []corev1.Toleration{noSchedule}}}
	plain := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Handler: "runc"}
	pod := func(change func(*corev1.PodSpec)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": quantity("1"), "memory": quantity("64Mi")}, Limits: corev1.ResourceList{"cpu": quantity("2")}}}}}}
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	t.Run("all of it", func(t *testing.T) {
		p := pod(func(s *corev1.PodSpec) {
			s.NodeSelector = map[string]string{"disk": "ssd", "box": "yes"}
			s.Tolerations = []corev1.Toleration{{Key: "own"}}
		})
		for range 2 {
			if err := ApplyRuntimeClass(p, boxed); err != nil {
				t.Fatal(err)
			}
		}
		if s := p.Spec; len(s.NodeSelector) != 2 || s.NodeSelector["box"] != "yes" || len(s.Tolerations) != 2 || s.Tolerations[1] != noSchedule {
			t.Errorf("%v %v", s.NodeSelector, s.Tolerations)
		}
		requests, limits := EffectiveRequests(p), EffectiveLimits(p)
		if requests.Cpu().String() != "1100m" || requests.Memory().String() != "128Mi" || limits.Cpu().String() != "2100m" || !limits.Memory().IsZero() {
			t.Errorf("requests %v, limits %v", requests, limits)
		}
		p.Spec.Overhead["cpu"] = quantity("5")
		if o := boxed.Overhead.PodFixed["cpu"]; o.String() != "100m" {
			t.Error("pod and class share their overhead")
		}
	})
	for _, row := range []struct {
		name   string
		class  *nodev1.RuntimeClass
		change func(*corev1.PodSpec)
		refuse string
	}{
		{"no class", nil, nil, ""},
		{"overhead without a class", nil, func(s *corev1.PodSpec) { s.Overhead = overhead }, "without a runtimeClassName"},
		{"the class's overhead", boxed, func(s *corev1.PodSpec) { s.Overhead = overhead }, ""},
		{"another overhead", boxed, func(s *corev1.PodSpec) { s.Overhead = corev1.ResourceList{"cpu": quantity("1")} }, `differs from that of RuntimeClass "boxed"`},
		{"overhead where the class has none", plain, func(s *corev1.PodSpec) { s.Overhead = overhead }, `RuntimeClass "plain" has none`},
		{"a class with nothing", plain, nil, ""},
		{"another node", boxed, func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"box": "no"} }, "conflict: runtimeClass.scheduling.nodeSelector[box] = yes; pod.spec.nodeSelector[box] = no"},
	} {
		if err := ApplyRuntimeClass(pod(row.change), row.class); (err == nil) != (row.refuse == "") || err != nil && !strings.Contains(err.Error(), row.refuse) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestNewImageExecContainer proves IX-07: an image exec is shown with a name of its own and as what it really is.
func TestNewImageExecContainer(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "image-exec"}}}}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "image-exec-1"}}}
	c := NewImageExecContainer(p, ImageExec{Image: "tools", Command: []string{"ls"}, Target: "image-exec"})
	if c.Name != "image-exec-2" || c.Image != "tools" || c.TargetContainerName != "image-exec" || *c.SecurityContext.RunAsUser != 0 {
		t.Errorf("%+v", c)
	}
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	if c = NewImageExecContainer(p, ImageExec{}); !*c.SecurityContext.RunAsNonRoot || len(c.SecurityContext.Capabilities.Drop) != 1 {
		t.Errorf("in a pod without root: %+v", c.SecurityContext)
	}
}

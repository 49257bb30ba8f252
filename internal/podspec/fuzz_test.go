// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// FuzzPod feeds arbitrary JSON Pods to everything here: nothing may panic, defaults must be idempotent, and an
// unchanged Pod must always be a valid update of itself as far as its spec goes.
func FuzzPod(f *testing.F) {
	seeds := []string{
		`{}`,
		`{"spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"cpu":"-1e99","hugepages-":"1","hugepages-0":"1"}}}]}}`,
		`{"spec":{"resources":{"limits":{"cpu":"1"}},"overhead":{"":"1"},"volumes":[{"projected":{"sources":[{},null]}},null]}}`,
		`{"spec":{"containers":[{"env":[{"valueFrom":{"fieldRef":{"fieldPath":"']"}}},{"valueFrom":{"resourceFieldRef":{"resource":"limits.","divisor":"0"}}}]}]}}`,
		`{"spec":{"securityContext":{"sysctls":[{"name":"/."}]},"ephemeralContainers":[{"targetContainerName":""}],"schedulingGates":[{}]}}`,
	}
	whole, err := json.Marshal(goodPod())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range append(seeds, string(whole)) {
		f.Add([]byte(s), []byte(`{}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		pod, other := &corev1.Pod{}, &corev1.Pod{}
		if json.Unmarshal(a, pod) != nil || json.Unmarshal(b, other) != nil {
			return
		}
		use(pod)
		SetDefaults(pod)
		again := pod.DeepCopy()
		SetDefaults(again)
		if !equality.Semantic.DeepEqual(pod, again) {
			t.Error("defaults are not idempotent")
		}
		use(pod)
		for _, validate := range updates() {
			validate(pod, other)
			validate(other, pod)
		}
		for _, e := range ValidateUpdate(again, pod) {
			if e.Field == "spec" {
				t.Errorf("unchanged, but: %v", e)
			}
		}
	})
}

func updates() []func(n, o *corev1.Pod) errs {
	return []func(n, o *corev1.Pod) errs{ValidateUpdate, ValidateStatusUpdate, ValidateEphemeralContainersUpdate}
}

// use calls everything that takes a Pod and must leave it as it is.
func use(pod *corev1.Pod) {
	for _, e := range append(Validate(pod), UnsupportedOn(pod, Host{})...) {
		_ = e.Error()
	}
	QOSClass(pod)
	EffectiveRequests(pod)
	EffectiveLimits(pod)
	BoundedLimits(pod)
	NamespaceModes(pod)
	for range Containers(&pod.Spec) {
	}
}

// TestNothingIsChanged: judging a Pod leaves it alone.
func TestNothingIsChanged(t *testing.T) {
	pod := goodPod()
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	before := pod.DeepCopy()
	use(pod)
	other := pod.DeepCopy()
	other.Spec.Affinity = nil
	for _, validate := range updates() {
		validate(pod, other)
		validate(other, pod)
	}
	if !equality.Semantic.DeepEqual(pod, before) {
		t.Error("the pod was changed")
	}
}

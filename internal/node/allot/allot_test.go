// SPDX-License-Identifier: Apache-2.0

package allot

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// PL-23: a container without a limit has that of its pod; the pod's own amounts are those it says of itself.
func TestPodLevel(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{Requests: list("cpu", "500m", "memory", "64Mi"), Limits: list("cpu", "1", "memory", "128Mi")},
		Containers: []corev1.Container{{Name: "a"}, {Name: "b", Resources: corev1.ResourceRequirements{
			Requests: list("cpu", "100m"), Limits: list("cpu", "200m")}}}}}
	for i, want := range []Amounts{{1024, 100000, 128 << 20}, {102, 20000, 128 << 20}} {
		if got := Container(pod, &pod.Spec.Containers[i]); got != want {
			t.Errorf("container %d: %+v", i, got)
		}
	}
	if got, want := Pod(pod), (Amounts{512, 100000, 128 << 20}); got != want {
		t.Errorf("pod: %+v", got)
	}
}

// PL-14: a pod's cgroup grows in everything that grows before anything shrinks.
func TestRaised(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to, raised Amounts
		tightens         bool
	}{
		"grows":          {Amounts{10, 2000, 100}, Amounts{20, 4000, 200}, Amounts{20, 4000, 200}, false},
		"shrinks":        {Amounts{20, 4000, 200}, Amounts{10, 2000, 100}, Amounts{20, 4000, 200}, true},
		"both":           {Amounts{20, 2000, 200}, Amounts{10, 4000, 100}, Amounts{20, 4000, 200}, true},
		"limit is added": {Amounts{10, 0, 0}, Amounts{10, 2000, 100}, Amounts{10, 0, 0}, true},
		"weight only":    {Amounts{20, 0, 0}, Amounts{10, 0, 0}, Amounts{20, 0, 0}, false},
	} {
		if got := tc.from.Raised(tc.to); got != tc.raised {
			t.Errorf("%s: raised %+v", name, got)
		}
		if got := tc.from.Tightens(tc.to); got != tc.tightens {
			t.Errorf("%s: tightens %v", name, got)
		}
	}
}

// PL-08: every weight has shares that come to it, and the shares of a request are the same again after that.
func TestWeight(t *testing.T) {
	for shares := int64(MinShares); shares < 5000; shares++ {
		if w := Weight(shares); Weight(OfWeight(w)) != w || !(Amounts{Shares: shares}).Same(Amounts{Shares: OfWeight(w)}) {
			t.Fatalf("%d shares weigh %d, which is %d shares", shares, w, OfWeight(w))
		}
	}
	if Weight(1024) != 100 || Weight(1) != 1 || Weight(1<<30) != 10000 {
		t.Errorf("weights: %d %d %d", Weight(1024), Weight(1), Weight(1<<30))
	}
}

// PL-21: a status tells the spec's own words while the kernel gives just that, however coarsely it counts, and what the
// kernel gives otherwise.
func TestTell(t *testing.T) {
	asked := corev1.ResourceRequirements{Requests: list("cpu", "1m", "memory", "35Mi"), Limits: list("cpu", "5m", "memory", "45Mi")}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: asked}}}}
	want := Container(pod, &pod.Spec.Containers[0])
	if got := Tell(asked, want, Container(pod, &corev1.Container{Resources: corev1.ResourceRequirements{
		Requests: list("cpu", "2m"), Limits: list("cpu", "10m", "memory", "45Mi")}})); !equality.Semantic.DeepEqual(*got, asked) {
		t.Errorf("equivalents: %v", got)
	}
	got := Tell(asked, want, Amounts{Shares: 256, Quota: 20000, Memory: 0})
	if !equality.Semantic.DeepEqual(*got, corev1.ResourceRequirements{Requests: list("cpu", "250m", "memory", "35Mi"), Limits: list("cpu", "200m")}) {
		t.Errorf("another: %v", got)
	}
}

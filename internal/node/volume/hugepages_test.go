// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPageSize proves PL-30: a volume of huge pages has the size that the pod asks for, in Kubernetes' words where it
// asks for none or for several.
func TestPageSize(t *testing.T) {
	pod := func(main, init string) *corev1.Pod {
		list := func(names string) corev1.ResourceRequirements {
			r := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
			for _, n := range strings.Fields(names) {
				r.Requests[corev1.ResourceName("hugepages-"+n)] = resource.MustParse("1Gi")
			}
			return r
		}
		return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Resources: list(init)}}, Containers: []corev1.Container{{Resources: list(main)}}}}
	}
	const none = "there is no resource request for huge pages"
	for _, c := range []struct {
		medium     corev1.StorageMedium
		main, init string
		want       int64
		err        string
	}{
		{"HugePages", "2Mi", "", 2 << 20, ""},
		{"HugePages", "", "1Gi", 1 << 30, ""},
		{"HugePages", "2Mi", "2Mi", 2 << 20, ""},
		{"HugePages", "2Mi", "1Gi", 0, "can't be used if container requests multiple huge page sizes"},
		{"HugePages", "", "", 0, none},
		{"HugePages-1Gi", "2Mi 1Gi", "", 1 << 30, ""},
		{"HugePages-1Gi", "2Mi", "", 0, none},
		{"HugePages-x", "2Mi", "", 0, "names no size"},
	} {
		got, err := pageSize(pod(c.main, c.init), c.medium)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s, %q, %q: %d, %v", c.medium, c.main, c.init, got, err)
		}
	}
	down := &corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}}}}
	if got, err := pageSize(down, "HugePages"); got != 2<<20 || err != nil {
		t.Errorf("of the pod as a whole: %d, %v", got, err)
	}
}

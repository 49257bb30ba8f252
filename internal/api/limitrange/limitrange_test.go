// SPDX-License-Identifier: Apache-2.0

package limitrange

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	if len(pairs) == 0 {
		return nil
	}
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func using(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func cpu(name, request, limit string) corev1.Container {
	return using(name, list("cpu", request), list("cpu", limit))
}

func sidecar(c corev1.Container) corev1.Container {
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

func podOf(inits []corev1.Container, mains ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: inits, Containers: mains, EphemeralContainers: []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}},
	}}}
}

func withOverhead(pod *corev1.Pod, pairs ...string) *corev1.Pod {
	pod.Spec.Overhead = list(pairs...)
	return pod
}

func ranges(items ...corev1.LimitRangeItem) []corev1.LimitRange {
	return []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: items}}}
}

func TestApply(t *testing.T) {
	r := ranges(
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "9")},
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: list("cpu", "2", "memory", "2Mi"), DefaultRequest: list("cpu", "1", "memory", "1Mi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: list("cpu", "7")},
	)
	pod := podOf([]corev1.Container{sidecar(cpu("proxy", "100m", "200m")), using("init", nil, nil)}, using("main", list("memory", "512Ki"), nil))
	Apply(pod, r)
	check := func(c *corev1.Container, requestCPU, limitCPU, requestMemory, limitMemory string) {
		t.Helper()
		got := []*resource.Quantity{c.Resources.Requests.Cpu(), c.Resources.Limits.Cpu(), c.Resources.Requests.Memory(), c.Resources.Limits.Memory()}
		for i, want := range []string{requestCPU, limitCPU, requestMemory, limitMemory} {
			if got[i].String() != want {
				t.Errorf("%s: %v, want %s in place %d", c.Name, got, want, i)
			}
		}
	}
	t.Run("SC-16 a sidecar gets the defaults it leaves open", func(t *testing.T) {
		check(&pod.Spec.InitContainers[0], "100m", "200m", "1Mi", "2Mi")
	})
	t.Run("inits and mains too, the first range counts", func(t *testing.T) {
		check(&pod.Spec.InitContainers[1], "1", "2", "1Mi", "2Mi")
		check(&pod.Spec.Containers[0], "1", "2", "512Ki", "2Mi")
	})
	t.Run("ephemeral containers do not", func(t *testing.T) {
		if r := pod.Spec.EphemeralContainers[0].Resources; len(r.Requests)+len(r.Limits) > 0 {
			t.Errorf("got %v", r)
		}
	})
	t.Run("the pod says so", func(t *testing.T) {
		want := "LimitRanger plugin set: memory request for init container proxy; memory limit for init container proxy; " +
			"cpu, memory request for init container init; cpu, memory limit for init container init; " +
			"cpu request for container main; cpu, memory limit for container main"
		if got := pod.Annotations[Annotation]; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("nothing open, nothing said", func(t *testing.T) {
		full := podOf(nil, using("main", list("cpu", "1", "memory", "1Mi"), list("cpu", "1", "memory", "1Mi")))
		Apply(full, r)
		if full.Annotations != nil {
			t.Errorf("got %v", full.Annotations)
		}
	})
}

func TestCheck(t *testing.T) {
	container := func(i corev1.LimitRangeItem) corev1.LimitRangeItem { i.Type = corev1.LimitTypeContainer; return i }
	pod := func(i corev1.LimitRangeItem) corev1.LimitRangeItem { i.Type = corev1.LimitTypePod; return i }
	small := cpu("main", "1", "1")
	for _, row := range []struct {
		name string
		item corev1.LimitRangeItem
		pod  *corev1.Pod
		want string
	}{
		{"SC-16 a sidecar is a container with a maximum", container(corev1.LimitRangeItem{Max: list("cpu", "1")}), podOf([]corev1.Container{sidecar(cpu("proxy", "1", "2"))}, small),
			"maximum cpu usage per Container is 1, but limit is 2 (init container proxy)"},
		{"an init too", container(corev1.LimitRangeItem{Max: list("cpu", "1")}), podOf([]corev1.Container{cpu("init", "1", "2")}, small),
			"maximum cpu usage per Container is 1, but limit is 2 (init container init)"},
		{"every violation is said", container(corev1.LimitRangeItem{Max: list("cpu", "1"), Min: list("memory", "1Mi")}), podOf(nil, cpu("a", "1", "2"), using("b", nil, nil)),
			"minimum memory usage per Container is 1Mi.  No request is specified (container a)\nmaximum cpu usage per Container is 1, but limit is 2 (container a)\n" +
				"minimum memory usage per Container is 1Mi.  No request is specified (container b)\nmaximum cpu usage per Container is 1.  No limit is specified (container b)"},
		{"minimum", container(corev1.LimitRangeItem{Min: list("cpu", "2")}), podOf(nil, small), "minimum cpu usage per Container is 2, but request is 1 (container main)"},
		{"at the bounds", container(corev1.LimitRangeItem{Min: list("cpu", "1"), Max: list("cpu", "1"), MaxLimitRequestRatio: list("cpu", "1")}), podOf(nil, small), ""},
		{"ratio", container(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")}), podOf(nil, cpu("main", "500m", "1500m")),
			"cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000 (container main)"},
		{"a ratio is exact", container(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "11")}), podOf(nil, cpu("main", "100m", "1100m")), ""},
		{"a ratio of nothing", container(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")}), podOf(nil, cpu("main", "0", "1")),
			"cpu max limit to request ratio per Container is 2, but no request is specified or request is 0 (container main)"},

		{"SC-16 sidecars add to what the pod takes", pod(corev1.LimitRangeItem{Max: list("cpu", "2")}), podOf([]corev1.Container{sidecar(cpu("proxy", "1500m", "1500m"))}, small),
			"maximum cpu usage per Pod is 2, but limit is 2500m"},
		{"SC-16 an ordinary init of that size does not", pod(corev1.LimitRangeItem{Max: list("cpu", "2")}), podOf([]corev1.Container{cpu("init", "1500m", "1500m")}, small), ""},
		{"SC-16 but beside a sidecar it does", pod(corev1.LimitRangeItem{Max: list("cpu", "2")}), podOf([]corev1.Container{sidecar(cpu("proxy", "1", "1")), cpu("init", "1500m", "1500m")}, small),
			"maximum cpu usage per Pod is 2, but limit is 2500m"},
		{"SC-16 a sidecar helps to reach the minimum", pod(corev1.LimitRangeItem{Min: list("cpu", "2")}), podOf([]corev1.Container{sidecar(cpu("proxy", "1", "1"))}, small), ""},
		{"SC-16 an init of one does not", pod(corev1.LimitRangeItem{Min: list("cpu", "2")}), podOf([]corev1.Container{cpu("init", "1", "1")}, small),
			"minimum cpu usage per Pod is 2, but request is 1"},
		{"SC-16 the ratio of a pod is that of the sums", pod(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")}), podOf([]corev1.Container{sidecar(cpu("proxy", "1", "4"))}, small),
			"cpu max limit to request ratio per Pod is 2, but provided ratio is 2.500000"},
		{"SC-16 the runtime's overhead is not what the pod asks for", pod(corev1.LimitRangeItem{Max: list("cpu", "1")}), withOverhead(podOf(nil, small), "cpu", "1"), ""},
		{"volume claims are no pods", corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("cpu", "1m")}, podOf(nil, small), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := ""
			if err := errors.Join(Check(row.pod, ranges(row.item))...); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

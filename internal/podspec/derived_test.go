// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

func using(name, cpu, memory string, sidecar bool) corev1.Container {
	c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
	if cpu != "" {
		c.Resources.Requests["cpu"] = quantity(cpu)
	}
	if memory != "" {
		c.Resources.Requests["memory"] = quantity(memory)
	}
	if sidecar {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	return c
}

// TestEffectiveRequests proves SC-14.
func TestEffectiveRequests(t *testing.T) {
	for _, row := range []struct {
		name        string
		inits       []corev1.Container
		mains       []corev1.Container
		cpu, memory string
	}{
		{"SC-14 mains add up", nil, []corev1.Container{using("a", "100m", "1Mi", false), using("b", "200m", "", false)}, "300m", "1Mi"},
		{"SC-14 a big init counts alone", []corev1.Container{using("i", "1", "1Mi", false), using("j", "500m", "5Mi", false)}, []corev1.Container{using("a", "100m", "2Mi", false)}, "1", "5Mi"},
		{"SC-14 sidecars add to mains", []corev1.Container{using("s", "300m", "1Mi", true)}, []corev1.Container{using("a", "100m", "1Mi", false)}, "400m", "2Mi"},
		{"SC-14 an init behind a sidecar has it beside", []corev1.Container{using("s", "300m", "", true), using("i", "1", "", false)}, []corev1.Container{using("a", "100m", "", false)}, "1300m", "0"},
		{"SC-14 a sidecar behind an init does not", []corev1.Container{using("i", "1", "", false), using("s", "300m", "", true)}, []corev1.Container{using("a", "100m", "", false)}, "1", "0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: row.inits, Containers: row.mains}}
			got := EffectiveRequests(pod)
			if got.Cpu().Cmp(quantity(row.cpu)) != 0 || got.Memory().Cmp(quantity(row.memory)) != 0 {
				t.Errorf("got %s cpu, %s memory; want %s, %s", got.Cpu(), got.Memory(), row.cpu, row.memory)
			}
		})
	}
	t.Run("SC-14 overhead and allocated", func(t *testing.T) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			Containers: []corev1.Container{using("a", "100m", "1Mi", false)},
			Overhead:   corev1.ResourceList{"memory": quantity("1Mi")},
		}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: corev1.ResourceList{"cpu": quantity("300m")}}}
		got := EffectiveRequests(pod)
		if got.Cpu().String() != "300m" || got.Memory().String() != "2Mi" {
			t.Errorf("got %v", got)
		}
		if pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
			t.Error("the pod was changed")
		}
	})
	t.Run("SC-14 EC-12 ephemeral containers do not count", func(t *testing.T) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon(using("d", "1", "1Gi", false))},
		}}}
		if got := EffectiveRequests(pod); len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

// TestEffectiveAgreesWithKubernetes compares with k8s.io/component-helpers over random Pods (SC-14).
func TestEffectiveAgreesWithKubernetes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []corev1.ResourceName{"cpu", "memory", "example.com/x"}
	list := func() corev1.ResourceList {
		l := corev1.ResourceList{}
		for _, n := range names {
			if random.IntN(2) == 0 {
				l[n] = *resource.NewQuantity(int64(random.IntN(10)), resource.DecimalSI)
			}
		}
		return l
	}
	for range 2000 {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Overhead: list()}}
		for i := range random.IntN(4) {
			c := corev1.Container{Name: fmt.Sprint("i", i), Resources: corev1.ResourceRequirements{Requests: list(), Limits: list()}}
			if random.IntN(2) == 0 {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
		for i := range 1 + random.IntN(3) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Requests: list(), Limits: list()},
			})
		}
		if got, want := EffectiveRequests(pod), helpers.PodRequests(pod, helpers.PodResourcesOptions{}); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("requests %v, want %v", got, want)
		}
		if got, want := EffectiveLimits(pod), helpers.PodLimits(pod, helpers.PodResourcesOptions{}); !equality.Semantic.DeepEqual(got, want) {
			t.Fatalf("limits %v, want %v", got, want)
		}
	}
}

func TestBoundedLimits(t *testing.T) {
	pod := goodPod() // only main has limits
	if got := BoundedLimits(pod); len(got) != 0 {
		t.Errorf("one container of four is limited, got %v", got)
	}
	pod.Spec.InitContainers, pod.Spec.Containers = nil, pod.Spec.Containers[:1]
	if got := BoundedLimits(pod); got.Cpu().String() != "1" || got.Memory().String() != "64Mi" {
		t.Errorf("got %v", got)
	}
}

// TestQOSClass proves SC-15 among others.
func TestQOSClass(t *testing.T) {
	both := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": quantity(cpu), "memory": quantity(memory)}
	}
	limited := corev1.Container{Resources: corev1.ResourceRequirements{Limits: both("1", "1Gi"), Requests: both("1", "1Gi")}}
	sidecar := corev1.Container{RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
	for _, row := range []struct {
		name string
		spec corev1.PodSpec
		want corev1.PodQOSClass
	}{
		{"nothing asked", corev1.PodSpec{Containers: []corev1.Container{{}}}, corev1.PodQOSBestEffort},
		{"zero asked", corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: both("0", "0")}}}}, corev1.PodQOSBestEffort},
		{"other resources do not count", corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"ephemeral-storage": quantity("1")}}}}}, corev1.PodQOSBestEffort},
		{"all limited", corev1.PodSpec{Containers: []corev1.Container{limited, limited}}, corev1.PodQOSGuaranteed},
		{"requests below limits", corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: both("1", "1Gi"), Requests: both("1m", "1Gi")}}}}, corev1.PodQOSBurstable},
		{"one of two limited", corev1.PodSpec{Containers: []corev1.Container{limited, {}}}, corev1.PodQOSBurstable},
		{"SC-15 a sidecar without limits", corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{limited}}, corev1.PodQOSBurstable},
		{"SC-15 a sidecar that asks", corev1.PodSpec{InitContainers: []corev1.Container{using("s", "1m", "", true)}, Containers: []corev1.Container{{}}}, corev1.PodQOSBurstable},
		{"EC-12 a debugger", corev1.PodSpec{Containers: []corev1.Container{limited}, EphemeralContainers: []corev1.EphemeralContainer{debugger("d")}}, corev1.PodQOSGuaranteed},
		{"pod-level", corev1.PodSpec{Containers: []corev1.Container{{}}, Resources: &corev1.ResourceRequirements{Limits: both("1", "1Gi"), Requests: both("1", "1Gi")}}, corev1.PodQOSGuaranteed},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := QOSClass(&corev1.Pod{Spec: row.spec}); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// TestNamespaceModes proves PID-01 and PID-02, as far as modes are derived.
func TestNamespaceModes(t *testing.T) {
	for _, row := range []struct {
		name string
		spec corev1.PodSpec
		want Namespaces
	}{
		{"PID-01 false false", corev1.PodSpec{}, Namespaces{Network: "POD", PID: "CONTAINER", IPC: "POD"}},
		{"PID-01 false true", corev1.PodSpec{HostPID: true, ShareProcessNamespace: new(false)}, Namespaces{Network: "POD", PID: "NODE", IPC: "POD"}},
		{"PID-01 true false", corev1.PodSpec{ShareProcessNamespace: new(true)}, Namespaces{Network: "POD", PID: "POD", IPC: "POD"}},
		{"PID-02 host network and IPC", corev1.PodSpec{HostNetwork: true, HostIPC: true}, Namespaces{Network: "NODE", PID: "CONTAINER", IPC: "NODE"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: row.spec}
			if got := NamespaceModes(pod); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

// TestContainers proves the order, kinds and paths of the walk (DC-10 for the names of the kinds).
func TestContainers(t *testing.T) {
	pod := goodPod()
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("debug")}
	pod.Spec.EphemeralContainers[0].TargetContainerName = "main"
	var got []string
	for ref := range Containers(&pod.Spec) {
		got = append(got, fmt.Sprintf("%s %s %s %s", ref.Path(), ref.Container.Name, ref.Kind.Label(), ref.Target))
	}
	want := []string{
		"spec.initContainers[0] setup INIT ",
		"spec.initContainers[1] proxy SIDECAR ",
		"spec.containers[0] main REGULAR ",
		"spec.containers[1] helper REGULAR ",
		"spec.ephemeralContainers[0] debug EPHEMERAL main",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/wherryproject/wherry/internal/node/allot"
)

// list reads "cpu=500m memory=1Gi".
func list(s string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, kv := range strings.Fields(s) {
		k, v, _ := strings.Cut(kv, "=")
		out[corev1.ResourceName(k)] = resource.MustParse(v)
	}
	return out
}

func container(name, requests, limits string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}
}

func sidecar(name, requests, limits string) corev1.Container {
	c := container(name, requests, limits)
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func pod(uid string, mains ...corev1.Container) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: mains}}
	p.Name, p.Namespace, p.UID = "p", "default", types.UID(uid)
	return p
}

func TestPL08CPUUnits(t *testing.T) {
	for milli, want := range map[int64]uint64{
		-5: 2, 0: 2, 1: 2, 2: 2, 10: 10, 100: 102, 500: 512, 1000: 1024, 2500: 2560, 256000: 262144, math.MaxInt64: 262144,
	} {
		if got := uint64(allot.Shares(milli)); got != want {
			t.Errorf("%dm: %d shares, want %d", milli, got, want)
		}
	}
	for milli, want := range map[int64]int64{-1: 0, 0: 0, 1: 1000, 10: 1000, 11: 1100, 100: 10000, 1000: 100000, 2500: 250000} {
		if got := allot.Quota(milli); got != want {
			t.Errorf("%dm: quota %d, want %d", milli, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if a > b {
			a, b = b, a
		}
		if allot.Shares(a) > allot.Shares(b) || allot.Shares(a) < allot.MinShares || allot.Shares(b) > allot.MaxShares {
			t.Error("shares must grow within bounds")
		}
		if allot.Quota(a) < 0 || allot.Quota(b) < 0 {
			t.Error("quota must not be negative")
		}
	})
}

func TestPL08ResourcesOfPod(t *testing.T) {
	with := func(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod { change(p); return p }
	for _, tc := range []struct {
		what string
		pod  *corev1.Pod
		want string // shares quota memory
	}{
		{"best effort", pod("u", container("a", "", "")), "2 0 0"},
		{"guaranteed", pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), "1024 100000 1073741824"},
		{"guaranteed, two containers", pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi"), container("b", "cpu=500m memory=1Gi", "cpu=500m memory=1Gi")), "1536 150000 2147483648"},
		{"burstable, requests only", pod("u", container("a", "cpu=250m memory=1Gi", "")), "256 0 0"},
		{"burstable, all limited", pod("u", container("a", "cpu=250m memory=1Mi", "cpu=1 memory=2Mi"), container("b", "cpu=250m", "cpu=1 memory=2Mi")), "512 200000 4194304"},
		{"burstable, one without limits", pod("u", container("a", "cpu=250m", "cpu=1 memory=2Mi"), container("b", "cpu=250m", "")), "512 0 0"},
		{"burstable, one without a CPU limit", pod("u", container("a", "cpu=250m", "cpu=1 memory=2Mi"), container("b", "cpu=250m", "memory=2Mi")), "512 0 4194304"},
		{"burstable by memory alone", pod("u", container("a", "memory=1Gi", "")), "2 0 0"},
		{"an init asks for more", with(pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("i", "cpu=2 memory=1Mi", "cpu=2 memory=1Mi")}
		}), "2048 200000 1073741824"},
		{"a sidecar adds", with(pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{sidecar("s", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")}
		}), "2048 200000 2147483648"},
		{"a sidecar without limits", with(pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{sidecar("s", "", "")}
		}), "1024 0 0"},
		{"overhead", with(pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), func(p *corev1.Pod) {
			p.Spec.Overhead = list("cpu=1 memory=1Gi")
		}), "2048 200000 2147483648"},
		{"resources of the pod as a whole", with(pod("u", container("a", "", "")), func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=1 memory=1Gi"), Limits: list("cpu=2 memory=2Gi")}
		}), "1024 200000 2147483648"},
		{"an ephemeral container changes nothing (EC-12)", with(pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}}
		}), "1024 100000 1073741824"},
	} {
		r := ResourcesOf(tc.pod, Limits{PodPIDs: 77})
		if got := fmt.Sprint(r.CPUShares, r.CPUQuota, r.Memory); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.what, got, tc.want)
		}
		if r.PIDs != 77 {
			t.Errorf("%s: %d pids", tc.what, r.PIDs)
		}
	}
	r := ResourcesOf(pod("u", container("a", "cpu=1 hugepages-2Mi=4Mi", "cpu=1 hugepages-2Mi=4Mi")), Limits{HugePageSizes: []string{"2MB", "1GB"}})
	if fmt.Sprint(r.HugePages) != "map[1GB:0 2MB:4194304]" {
		t.Errorf("huge pages %v", r.HugePages)
	}
}

// PL-23, PL-30: a container without limits of huge pages has those of its pod, of each size by itself.
func TestHugePagesOfThePod(t *testing.T) {
	silent, own := container("a", "", ""), container("b", "", "hugepages-1Gi=1Gi")
	p := pod("u", silent, own)
	p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("6Mi"),
		"hugepages-1Gi": resource.MustParse("2Gi")}}
	node := Node{MemoryCapacity: 1000 << 20, HugePageSizes: []string{"2MB", "1GB"}}
	for _, row := range []struct {
		c    *corev1.Container
		want string
	}{
		{&silent, "1GB=2147483648 2MB=6291456"},
		{&own, "1GB=1073741824 2MB=6291456"},
	} {
		var got []string
		for _, l := range ContainerResources(p, row.c, node).HugepageLimits {
			got = append(got, fmt.Sprintf("%s=%d", l.PageSize, l.Limit))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("container %s: %v, want %s", row.c.Name, got, row.want)
		}
	}
}

func TestPL08ContainerResources(t *testing.T) {
	c := container("a", "cpu=100m memory=100Mi", "cpu=500m memory=200Mi hugepages-1Gi=2Gi")
	p := pod("u", c)
	node := Node{MemoryCapacity: 1000 << 20, HugePageSizes: []string{"2MB", "1GB"}}
	r := ContainerResources(p, &c, node)
	got := fmt.Sprint(r.CpuShares, r.CpuPeriod, r.CpuQuota, r.MemoryLimitInBytes, r.OomScoreAdj, r.MemorySwapLimitInBytes, r.Unified, r.HugepageLimits)
	if want := `102 100000 50000 209715200 900 0 map[] [page_size:"1GB" limit:2147483648 page_size:"2MB"]`; strings.ReplaceAll(got, "  ", " ") != want {
		t.Errorf("v1: %s\nwant %s", got, want)
	}
	node.V2 = true
	r = ContainerResources(p, &c, node)
	if r.Unified["memory.oom.group"] != "1" || r.MemorySwapLimitInBytes != 200<<20 {
		t.Errorf("v2: %v %d", r.Unified, r.MemorySwapLimitInBytes)
	}
	limited := container("a", "", "cpu=500m")
	if r := ContainerResources(pod("u", limited), &limited, node); r.CpuShares != 512 {
		t.Errorf("limit without request: %d shares", r.CpuShares)
	}
	free := container("a", "", "")
	if r := ContainerResources(pod("u", free), &free, node); r.CpuShares != 2 || r.CpuQuota != 0 || r.MemoryLimitInBytes != 0 || r.OomScoreAdj != 1000 {
		t.Errorf("nothing asked for: %v", r)
	}
}

func TestOOMScoreAdj(t *testing.T) {
	const capacity = 1000 << 20
	burst := func(request string) corev1.Container { return container("a", request, "") }
	for _, tc := range []struct {
		what string
		pod  *corev1.Pod
		want int64
	}{
		{"best effort", pod("u", burst("")), 1000},
		{"guaranteed", pod("u", container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi")), -997},
		{"a tenth of the node", pod("u", burst("memory=100Mi")), 900},
		{"nothing of memory", pod("u", burst("cpu=1")), 999},
		{"next to nothing", pod("u", burst("memory=1")), 999},
		{"all of the node", pod("u", burst("memory=1000Mi")), 3},
		{"more than the node", pod("u", burst("memory=5000Mi")), 3},
		{"node critical", func() *corev1.Pod { p := pod("u", burst("")); p.Spec.PriorityClassName = nodeCritical; return p }(), -997},
	} {
		if got := OOMScoreAdj(tc.pod, &tc.pod.Spec.Containers[0], capacity); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, got, tc.want)
		}
	}
	t.Run("SC-13 sidecar", func(t *testing.T) {
		p := pod("u", burst("memory=300Mi"), container("b", "memory=100Mi", ""))
		p.Spec.InitContainers = []corev1.Container{sidecar("small", "memory=10Mi", ""), sidecar("big", "memory=500Mi", ""), container("init", "memory=10Mi", "")}
		for i, want := range []int64{700, 500, 990} {
			if got := OOMScoreAdj(p, &p.Spec.InitContainers[i], capacity); got != want {
				t.Errorf("%s: %d, want %d", p.Spec.InitContainers[i].Name, got, want)
			}
		}
	})
	t.Run("requests of the pod as a whole", func(t *testing.T) {
		p := pod("u", burst("memory=100Mi"), container("b", "", ""))
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("memory=500Mi")}
		for i, want := range []int64{700, 800} { // 100+200 and 0+200 of 1000
			if got := OOMScoreAdj(p, &p.Spec.Containers[i], capacity); got != want {
				t.Errorf("%s: %d, want %d", p.Spec.Containers[i].Name, got, want)
			}
		}
	})
	if got := OOMScoreAdj(pod("u", burst("memory=1Gi")), &pod("u", burst("memory=1Gi")).Spec.Containers[0], 0); got != 999 {
		t.Errorf("unknown capacity: %d", got)
	}
}

func TestPL08Names(t *testing.T) {
	const uid = "1b2c-3d"
	g := pod(uid, container("a", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi"))
	b := pod(uid, container("a", "cpu=1", ""))
	e := pod(uid, container("a", "", ""))
	for _, tc := range []struct {
		root    string
		systemd bool
		pod     *corev1.Pod
		want    string
	}{
		{"", false, g, "/kubepods/pod1b2c-3d"},
		{"", false, b, "/kubepods/burstable/pod1b2c-3d"},
		{"", false, e, "/kubepods/besteffort/pod1b2c-3d"},
		{"wherry-ab12", false, b, "/wherry-ab12/kubepods/burstable/pod1b2c-3d"},
		{"", true, g, "/kubepods.slice/kubepods-pod1b2c_3d.slice"},
		{"", true, b, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice"},
		{"wherry-ab12", true, e, "/wherry_ab12.slice/wherry_ab12-kubepods.slice/wherry_ab12-kubepods-besteffort.slice/wherry_ab12-kubepods-besteffort-pod1b2c_3d.slice"},
	} {
		d, err := New(Config{Root: tc.root, Host: Host{Systemd: tc.systemd, V2: true, Mounts: map[string]string{"": "/nowhere"}}})
		if err != nil {
			t.Fatal(err)
		}
		got := d.ParentOf(tc.pod)
		if got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
		l := d.(*driver).layout
		found := false
		for _, class := range l.classes() {
			folder := got[strings.LastIndex(got, "/")+1:]
			if back, ok := l.uid(class, folder); ok && strings.HasPrefix(got, l.path(class)+"/"+folder) {
				found = back == uid
			}
		}
		if !found {
			t.Errorf("%s is not read back", got)
		}
	}
	l := layout{systemd: true}
	for _, folder := range []string{"kubepods-burstable.slice", "kubepods-burstable-podx.slice", "kubepods-pod.slice", "kubepods-podx.scope", "podx"} {
		if uid, ok := l.uid(l.top(), folder); ok {
			t.Errorf("%s became pod %q", folder, uid)
		}
	}
	for _, root := range []string{"../x", "a/./b", "a b", "a:b"} {
		if _, err := New(Config{Root: root, Host: Host{Mounts: map[string]string{"": "/nowhere"}}}); err == nil {
			t.Errorf("root %q is accepted", root)
		}
	}
}

// What v2 and systemd are told cannot be tried on every machine; the choice can.
func TestPL08Translate(t *testing.T) {
	r := Resources{CPUShares: 1024, CPUQuota: 50000, Memory: 1 << 20, PIDs: 9, HugePages: map[string]int64{"2MB": 0}}
	for _, systemd := range []bool{false, true} {
		v2 := (&driver{config: Config{Host: Host{V2: true, Systemd: systemd, Mounts: map[string]string{"": "/nowhere"}}}}).translate(r)
		if v2.CpuShares != 0 || v2.CpuWeight != 100 || v2.CpuQuota != 50000 || v2.CpuPeriod != 100000 || v2.Memory != 1<<20 || *v2.PidsLimit != 9 || len(v2.HugetlbLimit) != 1 || !v2.SkipDevices {
			t.Errorf("v2: %+v", v2)
		}
	}
	v1 := (&driver{config: Config{Host: Host{Mounts: map[string]string{"cpu": "/x", "memory": "/x"}}}}).translate(r)
	if v1.CpuShares != 1024 || v1.CpuWeight != 0 || v1.HugetlbLimit != nil {
		t.Errorf("v1: %+v", v1)
	}
	none := (&driver{config: Config{Host: Host{Mounts: map[string]string{"cpu": "/x", "memory": "/x", "pids": "/x"}}}}).translate(Resources{CPUShares: 2})
	if none.CpuQuota != -1 || none.Memory != -1 || *none.PidsLimit != -1 {
		t.Errorf("no limits: %+v", none)
	}
}

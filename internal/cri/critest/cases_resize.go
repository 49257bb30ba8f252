// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// testResize: what a container is given can be changed while it runs, and its status says so; it goes on running
// (PL-14).
func testResize(t *testing.T, e Env) {
	p := newPod(t, e)
	give := func(shares, quota, memory int64) *runtimeapi.LinuxContainerResources {
		return &runtimeapi.LinuxContainerResources{CpuShares: shares, CpuPeriod: 100000, CpuQuota: quota,
			MemoryLimitInBytes: memory}
	}
	id := p.create("main", []string{"run"}, func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources = give(102, 10000, 64<<20)
	})
	p.start(id)
	check := func(shares, quota, memory int64) {
		t.Helper()
		st := p.status(id)
		got := st.GetResources().GetLinux()
		if got.GetCpuShares() != shares || max(got.GetCpuQuota(), 0) != quota ||
			got.GetMemoryLimitInBytes() != memory ||
			st.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			t.Errorf("it is %v and given %v, want %d, %d, %d", st.GetState(), got, shares, quota, memory)
		}
	}
	check(102, 10000, 64<<20)
	for _, g := range []struct{ shares, quota, memory int64 }{{204, 20000, 128 << 20}, {51, 5000, 32 << 20}} {
		if _, err := e.Client.Runtime.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{
			ContainerId: id, Linux: give(g.shares, g.quota, g.memory)}); err != nil {
			t.Fatal(err)
		}
		check(g.shares, g.quota, g.memory)
	}
	if _, err := e.Client.Runtime.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: "0000", Linux: give(102, 10000, 64<<20)}); err == nil {
		t.Error("a container that is not there was given something")
	}
}

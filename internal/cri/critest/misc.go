// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version names the fake.
func (f *Fake) Version(ctx context.Context, r *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	if err := f.enter(ctx, "Version", r); err != nil {
		return nil, err
	}
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "1",
		RuntimeApiVersion: "v1"}, nil
}

// Status says ready, but for the conditions that [Fake.SetCondition] took away.
func (f *Fake) Status(ctx context.Context, r *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	if err := f.enter(ctx, "Status", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runtimeapi.RuntimeStatus{}
	for _, t := range []string{runtimeapi.RuntimeReady, runtimeapi.NetworkReady} {
		c := &runtimeapi.RuntimeCondition{Type: t, Status: true}
		if why, bad := f.notReady[t]; bad {
			c.Status, c.Reason, c.Message = false, "NotReady", why
		}
		out.Conditions = append(out.Conditions, c)
	}
	return &runtimeapi.StatusResponse{Status: out, RuntimeHandlers: []*runtimeapi.RuntimeHandler{{
		Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true},
	}}}, nil
}

// RuntimeConfig returns the cgroup driver.
func (f *Fake) RuntimeConfig(ctx context.Context,
	r *runtimeapi.RuntimeConfigRequest) (*runtimeapi.RuntimeConfigResponse, error) {
	if err := f.enter(ctx, "RuntimeConfig", r); err != nil {
		return nil, err
	}
	return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS}}, nil
}

// UpdateRuntimeConfig takes any configuration.
func (f *Fake) UpdateRuntimeConfig(ctx context.Context,
	r *runtimeapi.UpdateRuntimeConfigRequest) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	if err := f.enter(ctx, "UpdateRuntimeConfig", r); err != nil {
		return nil, err
	}
	return &runtimeapi.UpdateRuntimeConfigResponse{}, nil
}

// UpdatePodSandboxResources takes any resources for a sandbox that is there.
func (f *Fake) UpdatePodSandboxResources(ctx context.Context,
	r *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	if err := f.enter(ctx, "UpdatePodSandboxResources", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.w.sandbox(r.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}

// UpdateContainerResources shows the new resources in the status.
func (f *Fake) UpdateContainerResources(ctx context.Context,
	r *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	if err := f.enter(ctx, "UpdateContainerResources", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.w.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	c.resources = &runtimeapi.ContainerResources{Linux: r.GetLinux()}
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// ReopenContainerLog opens the log's path anew: a renamed file keeps what was written.
func (f *Fake) ReopenContainerLog(ctx context.Context,
	r *runtimeapi.ReopenContainerLogRequest) (*runtimeapi.ReopenContainerLogResponse, error) {
	if err := f.enter(ctx, "ReopenContainerLog", r); err != nil {
		return nil, err
	}
	c, _, err := f.runningContainer(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	if c.log != nil {
		if err := c.log.reopen(); err != nil {
			return nil, status.Error(codes.Unknown, err.Error())
		}
	}
	return &runtimeapi.ReopenContainerLogResponse{}, nil
}

// ContainerStats makes some numbers up for a container that is there.
func (f *Fake) ContainerStats(ctx context.Context,
	r *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	if err := f.enter(ctx, "ContainerStats", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.w.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatsResponse{Stats: c.stats()}, nil
}

// ListContainerStats makes some numbers up for what runs.
func (f *Fake) ListContainerStats(ctx context.Context,
	r *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	if err := f.enter(ctx, "ListContainerStats", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runtimeapi.ListContainerStatsResponse{}
	want := r.GetFilter()
	for _, c := range sorted(f.w.containers) {
		if c.running() && (want.GetId() == "" || want.GetId() == c.id) &&
			(want.GetPodSandboxId() == "" || want.GetPodSandboxId() == c.sandboxID) &&
			hasLabels(c.config.GetLabels(), want.GetLabelSelector()) {
			out.Stats = append(out.Stats, c.stats())
		}
	}
	return out, nil
}

// PodSandboxStats makes some numbers up for a sandbox that is there.
func (f *Fake) PodSandboxStats(ctx context.Context,
	r *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	if err := f.enter(ctx, "PodSandboxStats", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.w.sandbox(r.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatsResponse{Stats: f.w.sandboxStats(s)}, nil
}

// ListPodSandboxStats makes some numbers up for the sandboxes that are ready.
func (f *Fake) ListPodSandboxStats(ctx context.Context,
	r *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	if err := f.enter(ctx, "ListPodSandboxStats", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runtimeapi.ListPodSandboxStatsResponse{}
	for _, s := range sorted(f.w.sandboxes) {
		if s.ready && hasLabels(s.config.GetLabels(), r.GetFilter().GetLabelSelector()) {
			out.Stats = append(out.Stats, f.w.sandboxStats(s))
		}
	}
	return out, nil
}

func (w *world) sandboxStats(s *sandbox) *runtimeapi.PodSandboxStats {
	linux := &runtimeapi.LinuxPodSandboxStats{
		Cpu: cpu(1), Memory: memory(1), Process: &runtimeapi.ProcessUsage{Timestamp: time.Now().UnixNano(),
			ProcessCount: &runtimeapi.UInt64Value{Value: 1}},
		Network: &runtimeapi.NetworkUsage{Timestamp: time.Now().UnixNano(),
			DefaultInterface: &runtimeapi.NetworkInterfaceUsage{
				Name: "eth0", RxBytes: &runtimeapi.UInt64Value{Value: 100},
				TxBytes: &runtimeapi.UInt64Value{Value: 200}}},
	}
	for _, c := range w.containersOf(s.id) {
		if c.running() {
			linux.Containers = append(linux.Containers, c.stats())
		}
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{Id: s.id, Metadata: s.config.GetMetadata(),
			Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations()},
		Linux: linux,
	}
}

func (c *container) stats() *runtimeapi.ContainerStats {
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: c.id, Metadata: c.config.GetMetadata(),
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations()},
		Cpu: cpu(uint64(c.made)), Memory: memory(uint64(c.made)),
		WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: time.Now().UnixNano(),
			UsedBytes: &runtimeapi.UInt64Value{Value: 4096}, InodesUsed: &runtimeapi.UInt64Value{Value: 1}},
	}
}

func cpu(n uint64) *runtimeapi.CpuUsage {
	return &runtimeapi.CpuUsage{Timestamp: time.Now().UnixNano(),
		UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: n * 1e6},
		UsageNanoCores:       &runtimeapi.UInt64Value{Value: n * 1e3}}
}

func memory(n uint64) *runtimeapi.MemoryUsage {
	return &runtimeapi.MemoryUsage{Timestamp: time.Now().UnixNano(),
		WorkingSetBytes: &runtimeapi.UInt64Value{Value: n << 20}, UsageBytes: &runtimeapi.UInt64Value{Value: n << 21},
		RssBytes: &runtimeapi.UInt64Value{Value: n << 19}}
}

// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeClient and imageClient call the fake's methods directly, one line each: see unary in client.go.

type runtimeClient struct{ f *Fake }

type imageClient struct{ f *Fake }

func noStream(method string) error {
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

func (c runtimeClient) Version(ctx context.Context, in *runtimeapi.VersionRequest,
	_ ...grpc.CallOption) (*runtimeapi.VersionResponse, error) {
	return unary(ctx, c.f, in, c.f.Version)
}

func (c runtimeClient) RunPodSandbox(ctx context.Context, in *runtimeapi.RunPodSandboxRequest,
	_ ...grpc.CallOption) (*runtimeapi.RunPodSandboxResponse, error) {
	return unary(ctx, c.f, in, c.f.RunPodSandbox)
}

func (c runtimeClient) StopPodSandbox(ctx context.Context, in *runtimeapi.StopPodSandboxRequest,
	_ ...grpc.CallOption) (*runtimeapi.StopPodSandboxResponse, error) {
	return unary(ctx, c.f, in, c.f.StopPodSandbox)
}

func (c runtimeClient) RemovePodSandbox(ctx context.Context, in *runtimeapi.RemovePodSandboxRequest,
	_ ...grpc.CallOption) (*runtimeapi.RemovePodSandboxResponse, error) {
	return unary(ctx, c.f, in, c.f.RemovePodSandbox)
}

func (c runtimeClient) PodSandboxStatus(ctx context.Context, in *runtimeapi.PodSandboxStatusRequest,
	_ ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	return unary(ctx, c.f, in, c.f.PodSandboxStatus)
}

func (c runtimeClient) ListPodSandbox(ctx context.Context, in *runtimeapi.ListPodSandboxRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	return unary(ctx, c.f, in, c.f.ListPodSandbox)
}

func (c runtimeClient) CreateContainer(ctx context.Context, in *runtimeapi.CreateContainerRequest,
	_ ...grpc.CallOption) (*runtimeapi.CreateContainerResponse, error) {
	return unary(ctx, c.f, in, c.f.CreateContainer)
}

func (c runtimeClient) StartContainer(ctx context.Context, in *runtimeapi.StartContainerRequest,
	_ ...grpc.CallOption) (*runtimeapi.StartContainerResponse, error) {
	return unary(ctx, c.f, in, c.f.StartContainer)
}

func (c runtimeClient) StopContainer(ctx context.Context, in *runtimeapi.StopContainerRequest,
	_ ...grpc.CallOption) (*runtimeapi.StopContainerResponse, error) {
	return unary(ctx, c.f, in, c.f.StopContainer)
}

func (c runtimeClient) RemoveContainer(ctx context.Context, in *runtimeapi.RemoveContainerRequest,
	_ ...grpc.CallOption) (*runtimeapi.RemoveContainerResponse, error) {
	return unary(ctx, c.f, in, c.f.RemoveContainer)
}

func (c runtimeClient) ListContainers(ctx context.Context, in *runtimeapi.ListContainersRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	return unary(ctx, c.f, in, c.f.ListContainers)
}

func (c runtimeClient) ContainerStatus(ctx context.Context, in *runtimeapi.ContainerStatusRequest,
	_ ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	return unary(ctx, c.f, in, c.f.ContainerStatus)
}

func (c runtimeClient) UpdateContainerResources(ctx context.Context, in *runtimeapi.UpdateContainerResourcesRequest,
	_ ...grpc.CallOption) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return unary(ctx, c.f, in, c.f.UpdateContainerResources)
}

func (c runtimeClient) ReopenContainerLog(ctx context.Context, in *runtimeapi.ReopenContainerLogRequest,
	_ ...grpc.CallOption) (*runtimeapi.ReopenContainerLogResponse, error) {
	return unary(ctx, c.f, in, c.f.ReopenContainerLog)
}

func (c runtimeClient) ExecSync(ctx context.Context, in *runtimeapi.ExecSyncRequest,
	_ ...grpc.CallOption) (*runtimeapi.ExecSyncResponse, error) {
	return unary(ctx, c.f, in, c.f.ExecSync)
}

func (c runtimeClient) Exec(ctx context.Context, in *runtimeapi.ExecRequest,
	_ ...grpc.CallOption) (*runtimeapi.ExecResponse, error) {
	return unary(ctx, c.f, in, c.f.Exec)
}

func (c runtimeClient) Attach(ctx context.Context, in *runtimeapi.AttachRequest,
	_ ...grpc.CallOption) (*runtimeapi.AttachResponse, error) {
	return unary(ctx, c.f, in, c.f.Attach)
}

func (c runtimeClient) PortForward(ctx context.Context, in *runtimeapi.PortForwardRequest,
	_ ...grpc.CallOption) (*runtimeapi.PortForwardResponse, error) {
	return unary(ctx, c.f, in, c.f.PortForward)
}

func (c runtimeClient) ContainerStats(ctx context.Context, in *runtimeapi.ContainerStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ContainerStatsResponse, error) {
	return unary(ctx, c.f, in, c.f.ContainerStats)
}

func (c runtimeClient) ListContainerStats(ctx context.Context, in *runtimeapi.ListContainerStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListContainerStatsResponse, error) {
	return unary(ctx, c.f, in, c.f.ListContainerStats)
}

func (c runtimeClient) PodSandboxStats(ctx context.Context, in *runtimeapi.PodSandboxStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.PodSandboxStatsResponse, error) {
	return unary(ctx, c.f, in, c.f.PodSandboxStats)
}

func (c runtimeClient) ListPodSandboxStats(ctx context.Context, in *runtimeapi.ListPodSandboxStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	return unary(ctx, c.f, in, c.f.ListPodSandboxStats)
}

func (c runtimeClient) UpdateRuntimeConfig(ctx context.Context, in *runtimeapi.UpdateRuntimeConfigRequest,
	_ ...grpc.CallOption) (*runtimeapi.UpdateRuntimeConfigResponse, error) {
	return unary(ctx, c.f, in, c.f.UpdateRuntimeConfig)
}

func (c runtimeClient) Status(ctx context.Context, in *runtimeapi.StatusRequest,
	_ ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return unary(ctx, c.f, in, c.f.Status)
}

func (c runtimeClient) CheckpointContainer(ctx context.Context, in *runtimeapi.CheckpointContainerRequest,
	_ ...grpc.CallOption) (*runtimeapi.CheckpointContainerResponse, error) {
	return unary(ctx, c.f, in, c.f.CheckpointContainer)
}

func (c runtimeClient) CheckpointPod(ctx context.Context, in *runtimeapi.CheckpointPodRequest,
	_ ...grpc.CallOption) (*runtimeapi.CheckpointPodResponse, error) {
	return unary(ctx, c.f, in, c.f.CheckpointPod)
}

func (c runtimeClient) RestorePod(ctx context.Context, in *runtimeapi.RestorePodRequest,
	_ ...grpc.CallOption) (*runtimeapi.RestorePodResponse, error) {
	return unary(ctx, c.f, in, c.f.RestorePod)
}

func (c runtimeClient) ListMetricDescriptors(ctx context.Context, in *runtimeapi.ListMetricDescriptorsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	return unary(ctx, c.f, in, c.f.ListMetricDescriptors)
}

func (c runtimeClient) ListPodSandboxMetrics(ctx context.Context, in *runtimeapi.ListPodSandboxMetricsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	return unary(ctx, c.f, in, c.f.ListPodSandboxMetrics)
}

func (c runtimeClient) RuntimeConfig(ctx context.Context, in *runtimeapi.RuntimeConfigRequest,
	_ ...grpc.CallOption) (*runtimeapi.RuntimeConfigResponse, error) {
	return unary(ctx, c.f, in, c.f.RuntimeConfig)
}

func (c runtimeClient) UpdatePodSandboxResources(ctx context.Context, in *runtimeapi.UpdatePodSandboxResourcesRequest,
	_ ...grpc.CallOption) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return unary(ctx, c.f, in, c.f.UpdatePodSandboxResources)
}

func (c runtimeClient) StreamPodSandboxes(context.Context, *runtimeapi.StreamPodSandboxesRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.StreamPodSandboxesResponse], error) {
	return nil, noStream("StreamPodSandboxes")
}

func (c runtimeClient) StreamContainers(context.Context, *runtimeapi.StreamContainersRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.StreamContainersResponse], error) {
	return nil, noStream("StreamContainers")
}

func (c runtimeClient) StreamContainerStats(context.Context, *runtimeapi.StreamContainerStatsRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.StreamContainerStatsResponse], error) {
	return nil, noStream("StreamContainerStats")
}

func (c runtimeClient) StreamPodSandboxStats(context.Context, *runtimeapi.StreamPodSandboxStatsRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.StreamPodSandboxStatsResponse], error) {
	return nil, noStream("StreamPodSandboxStats")
}

func (c runtimeClient) StreamPodSandboxMetrics(context.Context, *runtimeapi.StreamPodSandboxMetricsRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.StreamPodSandboxMetricsResponse], error) {
	return nil, noStream("StreamPodSandboxMetrics")
}

func (c imageClient) ListImages(ctx context.Context, in *runtimeapi.ListImagesRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListImagesResponse, error) {
	return unary(ctx, c.f, in, c.f.ListImages)
}

func (c imageClient) ImageStatus(ctx context.Context, in *runtimeapi.ImageStatusRequest,
	_ ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error) {
	return unary(ctx, c.f, in, c.f.ImageStatus)
}

func (c imageClient) PullImage(ctx context.Context, in *runtimeapi.PullImageRequest,
	_ ...grpc.CallOption) (*runtimeapi.PullImageResponse, error) {
	return unary(ctx, c.f, in, c.f.PullImage)
}

func (c imageClient) RemoveImage(ctx context.Context, in *runtimeapi.RemoveImageRequest,
	_ ...grpc.CallOption) (*runtimeapi.RemoveImageResponse, error) {
	return unary(ctx, c.f, in, c.f.RemoveImage)
}

func (c imageClient) ImageFsInfo(ctx context.Context, in *runtimeapi.ImageFsInfoRequest,
	_ ...grpc.CallOption) (*runtimeapi.ImageFsInfoResponse, error) {
	return unary(ctx, c.f, in, c.f.ImageFsInfo)
}

func (c imageClient) StreamImages(context.Context, *runtimeapi.StreamImagesRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[runtimeapi.StreamImagesResponse], error) {
	return nil, noStream("StreamImages")
}

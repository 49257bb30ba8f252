// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// guard refuses PID namespace targets that the CRI calls errors and that runtimes let through: containerd takes TARGET
// on a sandbox for CONTAINER (PID-09), and accepts a short prefix as the target's id (PID-08).
type guard struct {
	runtimeapi.RuntimeServiceClient
}

func (g *guard) RunPodSandbox(ctx context.Context, in *runtimeapi.RunPodSandboxRequest, opts ...grpc.CallOption) (*runtimeapi.RunPodSandboxResponse, error) {
	ns := in.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions()
	if ns.GetPid() == runtimeapi.NamespaceMode_TARGET {
		return nil, status.Error(codes.InvalidArgument, "PID namespace mode TARGET is not for a pod sandbox, only for a container in one")
	}
	return g.RuntimeServiceClient.RunPodSandbox(ctx, in, opts...)
}

func (g *guard) CreateContainer(ctx context.Context, in *runtimeapi.CreateContainerRequest, opts ...grpc.CallOption) (*runtimeapi.CreateContainerResponse, error) {
	ns := in.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions()
	if ns.GetPid() == runtimeapi.NamespaceMode_TARGET {
		if err := g.checkTarget(ctx, in.GetPodSandboxId(), ns.GetTargetId()); err != nil {
			return nil, err
		}
	}
	return g.RuntimeServiceClient.CreateContainer(ctx, in, opts...)
}

// checkTarget lets pass only the full id of a container of the same sandbox. Whether that one runs is for the runtime to
// say: only it knows at the moment it matters.
func (g *guard) checkTarget(ctx context.Context, sandboxID, targetID string) error {
	if targetID == "" {
		return status.Error(codes.InvalidArgument, "PID namespace mode TARGET needs the id of a container of the pod")
	}
	list, err := g.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{PodSandboxId: sandboxID},
	})
	if err != nil {
		return err
	}
	for _, c := range list.GetContainers() {
		if c.GetId() == targetID && c.GetPodSandboxId() == sandboxID {
			return nil
		}
	}
	return status.Errorf(codes.NotFound, "PID namespace target %q is not a container of pod sandbox %q", targetID, sandboxID)
}

// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// guard refuses PID namespace targets that the CRI calls errors and that runtimes let through: containerd takes TARGET
// on a sandbox for CONTAINER (PID-09), and accepts a short prefix as the target's id (PID-08). A refusal of the
// runtime's own it makes name the mode (PID-11).
type guard struct {
	runtimeapi.RuntimeServiceClient
}

func (g *guard) RunPodSandbox(ctx context.Context, in *runtimeapi.RunPodSandboxRequest,
	opts ...grpc.CallOption) (*runtimeapi.RunPodSandboxResponse, error) {
	ns := in.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions()
	if ns.GetPid() == runtimeapi.NamespaceMode_TARGET {
		return nil,
			status.Error(codes.InvalidArgument,
				"PID namespace mode TARGET cannot be used for a pod sandbox, only for a container in one")
	}
	r, err := g.RuntimeServiceClient.RunPodSandbox(ctx, in, opts...)
	return r, named(ns, err)
}

// named adds the PID namespace mode that was asked for to the answer of a runtime that does not support something:
// there are such that do not say what (PID-11).
func named(ns *runtimeapi.NamespaceOption, err error) error {
	if ns == nil || err == nil {
		return err
	}
	text, mode := Message(err), ns.GetPid().String()
	if strings.Contains(text, mode) || !Unimplemented(err) && !refusesMode(text) {
		return err
	}
	return status.Errorf(code(err), "%s (PID namespace mode %s was requested)", text, mode)
}

// refusesMode reports whether a runtime's words are about a mode of a namespace; most have no code for that. (Pure.)
func refusesMode(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "namespace") && (strings.Contains(text, "mode") ||
		strings.Contains(text, "option")) &&
		(strings.Contains(text, "support") || strings.Contains(text, "invalid") || strings.Contains(text, "unknown"))
}

func (g *guard) CreateContainer(ctx context.Context, in *runtimeapi.CreateContainerRequest,
	opts ...grpc.CallOption) (*runtimeapi.CreateContainerResponse, error) {
	ns := in.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions()
	if ns.GetPid() == runtimeapi.NamespaceMode_TARGET {
		if err := g.checkTarget(ctx, in.GetPodSandboxId(), ns.GetTargetId()); err != nil {
			return nil, err
		}
	}
	r, err := g.RuntimeServiceClient.CreateContainer(ctx, in, opts...)
	return r, named(ns, err)
}

// checkTarget lets pass only the full id of a container of the same sandbox. Whether that one runs is for the runtime
// to say: only it knows at the moment it matters.
func (g *guard) checkTarget(ctx context.Context, sandboxID, targetID string) error {
	if targetID == "" {
		return status.Error(codes.InvalidArgument, "PID namespace mode TARGET needs the ID of a container of the pod")
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
	return status.Errorf(codes.NotFound, "PID namespace target %q is not a container of pod sandbox %q", targetID,
		sandboxID)
}

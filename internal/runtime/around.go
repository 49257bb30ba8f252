// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"

	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// around sees to calls of the embedded containerd's CRI: what a removed sandbox has left, what is left of containers
// that the CRI has lost sight of, how containers ended, and stops that would not end. Images are pulled by our own
// package in place of the CRI.
func (r *Runtime) around(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	return r.reapAfter(ctx, req, func(ctx context.Context, req any) (any, error) {
		return r.known(ctx, req, func(ctx context.Context, req any) (any, error) {
			return r.stopAll(ctx, req, handle)
		})
	})
}

// known has the CRI's answers be true of containers whose start failed halfway (RS-07, SC-19), and has the room in
// which a container's end will be noted before it is started.
func (r *Runtime) known(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	var reply any
	call := func() (err error) {
		reply, err = handle(ctx, req)
		return err
	}
	var err error
	switch q := req.(type) {
	case *criapi.PullImageRequest:
		return r.puller.Pull(ctx, q)
	case *criapi.StartContainerRequest:
		if err = r.dirs.roomForNote(q.GetContainerId()); err == nil {
			err = call()
		}
	case *criapi.RemoveContainerRequest:
		err = r.remove(ctx, q.GetContainerId(), call)
	case *criapi.RemovePodSandboxRequest:
		err = r.removeSandbox(ctx, q.GetPodSandboxId(), call)
	case *criapi.ContainerStatusRequest:
		res := &criapi.ContainerStatusResponse{}
		err = r.status(ctx, q.GetContainerId(), res, func() error {
			err := call()
			if got, ok := reply.(*criapi.ContainerStatusResponse); ok && err == nil {
				res.Status = got.GetStatus()
			}
			return err
		})
		if err == nil {
			r.dirs.correct(res.Status)
		}
	default:
		err = call()
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri/critest/script"
)

// CreateContainer reserves (name, attempt), takes its time, and makes a container in state Created.
func (f *Fake) CreateContainer(ctx context.Context,
	r *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	const method = "CreateContainer"
	if err := f.begin(ctx, method, r); err != nil {
		return nil, err
	}
	c, err := f.reserveContainer(r)
	if err != nil {
		return nil, err
	}
	err = f.wait(ctx, method)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = f.makeContainer(c, r)
	}
	if err != nil {
		f.w.release(c.name)
		return nil, err
	}
	f.w.containers[c.id] = c
	f.w.emit(c.id, c.sandboxID, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &runtimeapi.CreateContainerResponse{ContainerId: c.id}, nil
}

func (f *Fake) reserveContainer(r *runtimeapi.CreateContainerRequest) (*container, error) {
	m, pod := r.GetConfig().GetMetadata(), r.GetSandboxConfig().GetMetadata()
	if m.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "container config must include metadata with a name")
	}
	if pod == nil {
		return nil, status.Error(codes.InvalidArgument, "pod sandbox config must include metadata")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.w.readySandbox(r.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	c := &container{sandboxID: s.id, config: r.GetConfig(), ended: make(chan struct{})}
	c.id, c.made = f.w.newID("container")
	c.name = strings.Join([]string{m.GetName(), pod.GetName(), pod.GetNamespace(), pod.GetUid(),
		fmt.Sprint(m.GetAttempt())}, "_")
	if err := f.w.reserve(c.name, c.id); err != nil {
		return nil,
			status.Errorf(codes.FailedPrecondition,
				"failed to reserve container name %q; check if another CreateContainer request is in progress: %s",
				c.name, status.Convert(err).Message())
	}
	return c, nil
}

func (f *Fake) makeContainer(c *container, r *runtimeapi.CreateContainerRequest) error {
	s, err := f.w.readySandbox(c.sandboxID)
	if err != nil {
		return err
	}
	if c.image = f.w.imageOf(r.GetConfig().GetImage().GetImage()); c.image == nil {
		return status.Errorf(codes.NotFound, "failed to resolve image %q: not found",
			r.GetConfig().GetImage().GetImage())
	}
	if c.pidns, err = f.w.pidNamespace(s, c); err != nil {
		return err
	}
	if c.script, err = f.scriptOf(c); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if c.script.CreateError != "" {
		return status.Error(codes.Unknown, c.script.CreateError)
	}
	if p := c.config.GetLogPath(); p != "" {
		c.logPath = filepath.Join(s.config.GetLogDirectory(), p)
	}
	c.created = time.Now()
	c.resources = &runtimeapi.ContainerResources{Linux: c.config.GetLinux().GetResources()}
	return nil
}

func (f *Fake) scriptOf(c *container) (script.Script, error) {
	base := c.image.Script
	if base.StopCode == 0 {
		base.StopCode = script.DefaultStopCode
	}
	if f.config.Script != nil {
		if s, ok := f.config.Script(c.info(f.w)); ok {
			return s, nil
		}
	}
	return base.With(slices.Concat(c.config.GetCommand(), c.config.GetArgs()))
}

func (w *world) readySandbox(id string) (*sandbox, error) {
	s, err := w.sandbox(id)
	if err != nil {
		return nil, err
	}
	if !s.ready {
		return nil, status.Errorf(codes.Unknown, "sandbox container %q is not running", s.id)
	}
	return s, nil
}

// pidNamespace says in whose PID namespace a container is (PID-07), and refuses targets that are none (PID-08).
func (w *world) pidNamespace(s *sandbox, c *container) (string, error) {
	opts := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	switch opts.GetPid() {
	case runtimeapi.NamespaceMode_POD:
		return podNamespace(s.id), nil
	case runtimeapi.NamespaceMode_CONTAINER:
		return c.id, nil
	case runtimeapi.NamespaceMode_NODE:
		if s.options().GetPid() != runtimeapi.NamespaceMode_NODE {
			return podNamespace(s.id), nil // as containerd does, silently
		}
		return "node", nil
	}
	t, err := w.container(opts.GetTargetId())
	switch {
	case err != nil:
		return "", status.Errorf(codes.NotFound, "invalid target container: container %q does not exist: not found",
			opts.GetTargetId())
	case t.sandboxID != s.id:
		return "",
			status.Errorf(codes.Unknown,
				"invalid target container: container %q (sandbox %s) does not belong to sandbox %s", t.id, t.sandboxID,
				s.id)
	case !t.running():
		return "", status.Errorf(codes.Unknown, "invalid target container: container %q is not running - in state %s",
			t.id, t.state())
	}
	return t.pidns, nil
}

// StartContainer starts a created container, once. One that cannot be started is ended with reason StartError.
func (f *Fake) StartContainer(ctx context.Context,
	r *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	const method = "StartContainer"
	if err := f.begin(ctx, method, r); err != nil {
		return nil, err
	}
	c, err := f.markStarting(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	err = f.wait(ctx, method)
	f.mu.Lock()
	defer f.mu.Unlock()
	c.starting = false
	if err == nil {
		err = f.w.start(c)
	}
	if err != nil {
		c.finished, c.exitCode, c.reason, c.message = time.Now(), exitStartError, reasonStartError,
			status.Convert(err).Message()
		close(c.ended)
		return nil, err
	}
	return &runtimeapi.StartContainerResponse{}, nil
}

func (f *Fake) markStarting(id string) (*container, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.w.container(id)
	if err != nil {
		return nil, err
	}
	if c.state() != runtimeapi.ContainerState_CONTAINER_CREATED {
		return nil,
			status.Errorf(codes.Unknown, "failed to set starting state for container %q: container is in %s state",
				c.id, c.state())
	}
	if c.starting {
		return nil,
			status.Errorf(codes.Unknown,
				"failed to set starting state for container %q: container is already in starting state", c.id)
	}
	c.starting = true
	return c, nil
}

// StopContainer sends the stop signal once, waits, and kills. Unknown and ended containers are no error. A second call
// waits no longer than its own timeout, and does not signal again.
func (f *Fake) StopContainer(ctx context.Context,
	r *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	if err := f.enter(ctx, "StopContainer", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	c, err := f.w.container(r.GetContainerId())
	if err != nil || !c.running() {
		f.mu.Unlock()
		return &runtimeapi.StopContainerResponse{}, nil
	}
	if r.GetTimeout() <= 0 {
		f.w.exit(c, exitKilled, "")
		f.mu.Unlock()
		return &runtimeapi.StopContainerResponse{}, nil
	}
	f.w.signal(c)
	f.mu.Unlock()

	t := time.NewTimer(time.Duration(r.GetTimeout()) * time.Second)
	defer t.Stop()
	select {
	case <-c.ended:
	case <-t.C:
		f.mu.Lock()
		f.w.exit(c, exitKilled, "")
		f.mu.Unlock()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-f.downs():
		return nil, errDown()
	}
	return &runtimeapi.StopContainerResponse{}, nil
}

// RemoveContainer kills the container if it runs and removes it; its name is free again. Idempotent.
func (f *Fake) RemoveContainer(ctx context.Context,
	r *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	if err := f.enter(ctx, "RemoveContainer", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.w.container(r.GetContainerId())
	if err != nil {
		return &runtimeapi.RemoveContainerResponse{}, nil
	}
	if c.starting {
		return nil,
			status.Errorf(codes.Unknown,
				"failed to set removing state for container %q: container is in starting state, can't be removed", c.id)
	}
	f.w.remove(c)
	return &runtimeapi.RemoveContainerResponse{}, nil
}

// ContainerStatus answers NotFound for what is not there.
func (f *Fake) ContainerStatus(ctx context.Context,
	r *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	if err := f.enter(ctx, "ContainerStatus", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.w.container(r.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatusResponse{Status: c.status()}, nil
}

// ListContainers filters by id, sandbox, state and labels.
func (f *Fake) ListContainers(ctx context.Context,
	r *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	if err := f.enter(ctx, "ListContainers", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runtimeapi.ListContainersResponse{}
	want := r.GetFilter()
	for _, c := range sorted(f.w.containers) {
		switch {
		case want.GetId() != "" && !strings.HasPrefix(c.id, want.GetId()):
		case want.GetPodSandboxId() != "" && !strings.HasPrefix(c.sandboxID, want.GetPodSandboxId()):
		case want.GetState() != nil && want.GetState().GetState() != c.state():
		case !hasLabels(c.config.GetLabels(), want.GetLabelSelector()):
		default:
			out.Containers = append(out.Containers, &runtimeapi.Container{
				Id: c.id, PodSandboxId: c.sandboxID, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
				ImageRef: c.image.id, ImageId: c.image.id, State: c.state(), CreatedAt: c.created.UnixNano(),
				Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
			})
		}
	}
	return out, nil
}

func (c *container) status() *runtimeapi.ContainerStatus {
	st := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state(), CreatedAt: c.created.UnixNano(),
		Image: &runtimeapi.ImageSpec{Image: c.image.ref}, ImageRef: c.image.digest, ImageId: c.image.id,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(),
		LogPath: c.logPath, Resources: c.resources, Message: c.message, Reason: c.reason, ExitCode: c.exitCode,
		StopSignal: runtimeapi.Signal_SIGNAL_SIGTERM,
	}
	if !c.started.IsZero() {
		st.StartedAt = c.started.UnixNano()
	}
	if !c.finished.IsZero() {
		st.FinishedAt = c.finished.UnixNano()
	}
	if st.State == runtimeapi.ContainerState_CONTAINER_EXITED && st.Reason == "" {
		st.Reason = reasonCompleted
		if c.exitCode != 0 {
			st.Reason = reasonError
		}
	}
	return st
}

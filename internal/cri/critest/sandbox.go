// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox reserves the name, takes its time, and makes a ready sandbox.
func (f *Fake) RunPodSandbox(ctx context.Context,
	r *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	const method = "RunPodSandbox"
	if err := f.begin(ctx, method, r); err != nil {
		return nil, err
	}
	m := r.GetConfig().GetMetadata()
	if m.GetName() == "" || m.GetNamespace() == "" || m.GetUid() == "" {
		return nil,
			status.Error(codes.InvalidArgument, "sandbox config must include metadata with name, namespace and uid")
	}
	if r.GetConfig().GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid() == runtimeapi.NamespaceMode_TARGET {
		return nil, status.Error(codes.InvalidArgument, "PID namespace mode TARGET is not for a sandbox") // PID-09
	}
	name := strings.Join([]string{m.GetName(), m.GetNamespace(), m.GetUid(), fmt.Sprint(m.GetAttempt())}, "_")
	f.mu.Lock()
	id, made := f.w.newID("sandbox")
	err := f.w.reserve(name, id)
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := f.wait(ctx, method); err != nil {
		f.mu.Lock()
		f.w.release(name)
		f.mu.Unlock()
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &sandbox{made: made, id: id, name: name, config: r.GetConfig(), handler: r.GetRuntimeHandler(),
		created: time.Now(), ready: true}
	if s.options().GetNetwork() != runtimeapi.NamespaceMode_NODE {
		s.ip = fmt.Sprintf("10.88.%d.%d", made/250%250, made%250+2)
	}
	f.w.sandboxes[id] = s
	f.w.emit(id, id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	f.w.emit(id, id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}, nil
}

// StopPodSandbox kills what runs in the sandbox and stops it. Idempotent; an unknown id is no error.
func (f *Fake) StopPodSandbox(ctx context.Context,
	r *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	if err := f.enter(ctx, "StopPodSandbox", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, err := f.w.sandbox(r.GetPodSandboxId()); err == nil {
		f.w.stopSandbox(s)
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox stops the sandbox and removes it with its containers. Idempotent; an unknown id is no error.
func (f *Fake) RemovePodSandbox(ctx context.Context,
	r *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	if err := f.enter(ctx, "RemovePodSandbox", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.w.sandbox(r.GetPodSandboxId())
	if err != nil {
		return &runtimeapi.RemovePodSandboxResponse{}, nil
	}
	f.w.stopSandbox(s)
	for _, c := range f.w.containersOf(s.id) {
		f.w.remove(c)
	}
	f.w.emit(s.id, s.id, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	delete(f.w.sandboxes, s.id)
	f.w.release(s.name)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// PodSandboxStatus answers NotFound for what is not there.
func (f *Fake) PodSandboxStatus(ctx context.Context,
	r *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	if err := f.enter(ctx, "PodSandboxStatus", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.w.sandbox(r.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: s.status()}, nil
}

// ListPodSandbox filters by id, state and labels.
func (f *Fake) ListPodSandbox(ctx context.Context,
	r *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	if err := f.enter(ctx, "ListPodSandbox", r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &runtimeapi.ListPodSandboxResponse{}
	want := r.GetFilter()
	for _, s := range sorted(f.w.sandboxes) {
		switch {
		case want.GetId() != "" && !strings.HasPrefix(s.id, want.GetId()):
		case want.GetState() != nil && want.GetState().GetState() != s.state():
		case !hasLabels(s.config.GetLabels(), want.GetLabelSelector()):
		default:
			out.Items = append(out.Items, &runtimeapi.PodSandbox{
				Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(),
				Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.handler,
			})
		}
	}
	return out, nil
}

func hasLabels(labels, want map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	st := &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: s.state(), CreatedAt: s.created.UnixNano(),
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: s.ip},
		Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: s.options()}},
		Labels:  s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: s.handler,
	}
	return st
}

// stopSandbox kills the containers, then the pause process, and tears the network down.
func (w *world) stopSandbox(s *sandbox) {
	for _, c := range w.containersOf(s.id) {
		w.exit(c, exitKilled, "")
	}
	w.killPause(s)
	s.ip = ""
}

// killPause ends the sandbox's own process, and with it everything in the pod's shared PID namespace. Containers with
// one of their own run on.
func (w *world) killPause(s *sandbox) {
	if !s.ready {
		return
	}
	s.ready = false
	for _, c := range w.containersOf(s.id) {
		if c.pidns == podNamespace(s.id) {
			w.exit(c, exitKilled, "")
		}
	}
	w.emit(s.id, s.id, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

func podNamespace(sandboxID string) string { return "pod:" + sandboxID }

func (w *world) containersOf(sandboxID string) []*container {
	var out []*container
	for _, c := range sorted(w.containers) {
		if c.sandboxID == sandboxID {
			out = append(out, c)
		}
	}
	return out
}

// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// spy stands between the agent and the runtime. It holds every call against what the runtime truly has, and lets calls
// fail, before or after they took effect.
type spy struct {
	runtimeapi.RuntimeServiceClient
	sim *sim
	pod *corev1.Pod

	// mischief, if set, may fail a call: before it does anything, or, with late, after it was done.
	mischief func(method, container string) (err error, late bool)

	life context.Context // of the agent's process

	mu     sync.Mutex
	saw    []found          // what there was when the agent last looked
	ends   map[string]int32 // exit codes, by container id
	lost   map[string]bool  // containers that a reboot took away
	faults []string
	began  map[string]string // ids of debug containers that have begun, by name and attempt
}

func newSpy(s *sim, pod *corev1.Pod) *spy {
	return &spy{RuntimeServiceClient: s.truth.Runtime, sim: s, pod: pod, ends: map[string]int32{}, lost: map[string]bool{}}
}

func (p *spy) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf("at %.3f: %s", time.Since(p.sim.begin).Seconds(), text))
}

// found is a container as the runtime truly has it.
type found struct {
	*runtimeapi.ContainerStatus
	sandbox string
}

func (f found) name() string { return f.GetMetadata().GetName() }

// round is how often all containers had been told to start again.
func (f found) round() int {
	n, _ := strconv.Atoi(f.GetAnnotations()["wherry.dev/round"])
	return n
}

func (f found) running() bool { return f.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING }

func (f found) exited() bool { return f.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED }

func (f found) describe() string {
	s := fmt.Sprintf("%s/%d(", f.name(), f.GetMetadata().GetAttempt())
	switch {
	case f.running():
		return s + "running)"
	case f.exited():
		return s + fmt.Sprintf("exit %d)", f.GetExitCode())
	}
	return s + "created)"
}

// statuses asks the fake's own methods, past all that the tests do to calls. A runtime that is down says nothing.
func (s *sim) statuses() (out []found) {
	ctx := context.Background()
	list, err := s.truth.Runtime.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil
	}
	for _, c := range list.GetContainers() {
		if st, err := s.truth.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()}); err == nil {
			out = append(out, found{st.GetStatus(), c.GetPodSandboxId()})
		}
	}
	return out
}

// note keeps how containers ended, before they are removed.
func (p *spy) note() []found {
	all := p.sim.statuses()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range all {
		if c.exited() {
			p.ends[c.GetId()] = c.GetExitCode()
		}
	}
	p.noteDebug(all)
	return all
}

func (p *spy) nothingRuns(what string) {
	for _, c := range p.note() {
		if c.running() {
			p.fault("%s while %s runs", what, c.describe())
		}
	}
}

func (p *spy) isInit(name string) (init, sidecar bool, at int) {
	for i, n := range p.sim.order {
		if n != name {
			continue
		}
		if i >= len(p.pod.Spec.InitContainers) {
			return false, false, i
		}
		sidecar = p.pod.Spec.InitContainers[i].RestartPolicy != nil
		return !sidecar, sidecar, i
	}
	return false, false, -1
}

// checkStart holds what must be true when a container is started.
func (p *spy) checkStart(id string) {
	all := p.note()
	at := slices.IndexFunc(all, func(c found) bool { return c.GetId() == id })
	if at < 0 {
		return
	}
	it := all[at]
	isInit, _, _ := p.isInit(it.name())
	for _, c := range all {
		if c.name() == it.name() && c.running() && c.GetId() != id {
			p.fault("%s starts beside running %s", it.describe(), c.describe())
		}
		if c.running() && c.sandbox == it.sandbox && c.round() < it.round() && c.name()[0] != 'd' && it.name()[0] != 'd' {
			p.fault("%s starts while %s runs, which is to start again too", it.describe(), c.describe()) // PL-28
		}
		if isInit && c.name() == it.name() && c.sandbox == it.sandbox && c.round() == it.round() && c.exited() && c.GetExitCode() == 0 {
			p.fault("init %s starts again after %s completed in this sandbox", it.describe(), c.describe())
		}
		if c.running() && c.sandbox != it.sandbox {
			p.fault("%s starts while %s runs in another sandbox", it.describe(), c.describe())
		}
	}
	p.checkPolicy(it, all)
}

// checkGates holds what must be true when an operation begins that starts a container: every init before it has completed, and
// every sidecar before it ran when the agent last looked, or had run when something behind it was begun (SC-02, SC-04, SC-28).
func (p *spy) checkGates(name string) {
	all := p.note()
	ids, _ := p.sim.fake.Sandboxes()
	_, _, place := p.isInit(name)
	if len(ids) == 0 || place < 0 {
		return
	}
	box := ids[len(ids)-1]
	p.mu.Lock()
	saw := p.saw
	p.mu.Unlock()
	for at, gate := range p.sim.order[:min(place, len(p.pod.Spec.InitContainers))] {
		isInit, _, _ := p.isInit(gate)
		open := false
		for _, c := range append(all, saw...) {
			_, _, where := p.isInit(c.name())
			switch {
			case c.sandbox != box:
			case isInit && c.name() == gate:
				open = open || c.exited() && c.GetExitCode() == 0
			case !isInit:
				open = open || c.name() == gate && c.running() || where > at
			}
		}
		if !open {
			p.fault("%s is started before the gate %s is open", name, gate)
		}
	}
}

// checkPolicy holds the restart policy against a main's earlier attempts (PL-02).
func (p *spy) checkPolicy(it found, all []found) {
	if _, _, place := p.isInit(it.name()); place < len(p.pod.Spec.InitContainers) {
		return
	}
	for _, c := range all {
		if c.name() != it.name() || !c.exited() || c.GetReason() == "StartError" {
			continue
		}
		if c.GetAnnotations()["wherry.dev/image"] != it.GetAnnotations()["wherry.dev/image"] {
			continue // its image was changed
		}
		if c.round() < it.round() {
			continue // all start again
		}
		switch policy := p.pod.Spec.RestartPolicy; {
		case policy == corev1.RestartPolicyNever:
			p.fault("%s starts after %s in a pod that never restarts", it.describe(), c.describe())
		case policy == corev1.RestartPolicyOnFailure && c.GetExitCode() == 0:
			p.fault("%s starts after %s succeeded", it.describe(), c.describe())
		}
	}
}

// checkStatus holds a stored status against the truth.
func (p *spy) checkStatus(old, now *corev1.PodStatus) {
	if (old.Phase == corev1.PodSucceeded || old.Phase == corev1.PodFailed) && now.Phase != old.Phase {
		p.fault("phase goes from %s to %s", old.Phase, now.Phase)
	}
	runs := slices.ContainsFunc(now.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
	if old.Phase == corev1.PodRunning && now.Phase == corev1.PodPending && (runs || len(now.InitContainerStatuses) == 0) {
		p.fault("phase goes from Running back to Pending") // without being initialised anew (PL-39)
	}
	p.note()
	lists := [][2][]corev1.ContainerStatus{{old.InitContainerStatuses, now.InitContainerStatuses}, {old.ContainerStatuses, now.ContainerStatuses},
		{old.EphemeralContainerStatuses, now.EphemeralContainerStatuses}}
	p.checkDebugStatus(old.EphemeralContainerStatuses, now.EphemeralContainerStatuses)
	for _, l := range lists {
		for i := range l[1] {
			c := &l[1][i]
			if i < len(l[0]) && l[0][i].RestartCount > c.RestartCount {
				p.fault("restarts of %s go from %d down to %d", c.Name, l[0][i].RestartCount, c.RestartCount)
			}
			p.checkEnd(c.Name, c.State.Terminated)
			p.checkEnd(c.Name, c.LastTerminationState.Terminated)
		}
	}
}

func (p *spy) checkEnd(name string, t *corev1.ContainerStateTerminated) {
	if t == nil || t.ContainerID == "" {
		return
	}
	id := t.ContainerID[len("fake://"):]
	p.mu.Lock()
	code, known := p.ends[id]
	lost := p.lost[id]
	p.mu.Unlock()
	if lost && !known {
		return // a reboot took the truth with it
	}
	if !known {
		p.fault("%s is said to have ended with %d, but the runtime never said so", name, t.ExitCode)
	} else if code != t.ExitCode {
		p.fault("%s is said to have ended with %d, in truth it was %d", name, t.ExitCode, code)
	}
}

// rebooted remembers what the runtime is about to forget.
func (p *spy) rebooted() {
	for _, c := range p.note() {
		p.mu.Lock()
		p.lost[c.GetId()] = true
		p.mu.Unlock()
	}
}

// under faults a call that would end running containers of a sandbox.
func (p *spy) under(method, sandbox string) {
	for _, c := range p.note() {
		if c.sandbox == sandbox && c.running() {
			p.fault("%s under running %s", method, c.describe())
		}
	}
}

// pass is one call through the spy.
func pass[Resp any](ctx context.Context, p *spy, method, container string, call func(context.Context) (Resp, error)) (Resp, error) {
	var none Resp
	p.mu.Lock()
	mischief, life := p.mischief, p.life
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(life, cancel)() // the connection breaks when the agent dies, whatever it wanted to wait for
	if mischief == nil {
		return call(ctx)
	}
	err, late := mischief(method, container)
	if err != nil && !late {
		return none, err
	}
	r, real := call(ctx)
	if real != nil {
		return none, real
	}
	if err != nil {
		return none, err
	}
	return r, nil
}

func (p *spy) bedevil(f func(method, container string) (error, bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mischief = f
}

func errBroken() error { return status.Error(codes.Unknown, "something broke") }

func (p *spy) nameOf(id string) string {
	for _, c := range p.sim.fake.Containers() {
		if c.ID == id {
			return c.Container
		}
	}
	return ""
}

func (p *spy) RunPodSandbox(ctx context.Context, in *runtimeapi.RunPodSandboxRequest, o ...grpc.CallOption) (*runtimeapi.RunPodSandboxResponse, error) {
	if _, ready := p.sim.fake.Sandboxes(); slices.Contains(ready, true) {
		p.fault("a second sandbox is made beside a ready one")
	}
	return pass(ctx, p, "RunPodSandbox", "", func(ctx context.Context) (*runtimeapi.RunPodSandboxResponse, error) {
		return p.RuntimeServiceClient.RunPodSandbox(ctx, in, o...)
	})
}

func (p *spy) StopPodSandbox(ctx context.Context, in *runtimeapi.StopPodSandboxRequest, o ...grpc.CallOption) (*runtimeapi.StopPodSandboxResponse, error) {
	p.under("StopPodSandbox", in.GetPodSandboxId())
	return pass(ctx, p, "StopPodSandbox", "", func(ctx context.Context) (*runtimeapi.StopPodSandboxResponse, error) {
		return p.RuntimeServiceClient.StopPodSandbox(ctx, in, o...)
	})
}

func (p *spy) RemovePodSandbox(ctx context.Context, in *runtimeapi.RemovePodSandboxRequest, o ...grpc.CallOption) (*runtimeapi.RemovePodSandboxResponse, error) {
	p.under("RemovePodSandbox", in.GetPodSandboxId())
	return pass(ctx, p, "RemovePodSandbox", "", func(ctx context.Context) (*runtimeapi.RemovePodSandboxResponse, error) {
		return p.RuntimeServiceClient.RemovePodSandbox(ctx, in, o...)
	})
}

func (p *spy) CreateContainer(ctx context.Context, in *runtimeapi.CreateContainerRequest, o ...grpc.CallOption) (*runtimeapi.CreateContainerResponse, error) {
	return pass(ctx, p, "CreateContainer", in.GetConfig().GetMetadata().GetName(), func(ctx context.Context) (*runtimeapi.CreateContainerResponse, error) {
		return p.RuntimeServiceClient.CreateContainer(ctx, in, o...)
	})
}

func (p *spy) StartContainer(ctx context.Context, in *runtimeapi.StartContainerRequest, o ...grpc.CallOption) (*runtimeapi.StartContainerResponse, error) {
	p.checkStart(in.GetContainerId())
	return pass(ctx, p, "StartContainer", p.nameOf(in.GetContainerId()), func(ctx context.Context) (*runtimeapi.StartContainerResponse, error) {
		return p.RuntimeServiceClient.StartContainer(ctx, in, o...)
	})
}

func (p *spy) StopContainer(ctx context.Context, in *runtimeapi.StopContainerRequest, o ...grpc.CallOption) (*runtimeapi.StopContainerResponse, error) {
	return pass(ctx, p, "StopContainer", p.nameOf(in.GetContainerId()), func(ctx context.Context) (*runtimeapi.StopContainerResponse, error) {
		return p.RuntimeServiceClient.StopContainer(ctx, in, o...)
	})
}

func (p *spy) RemoveContainer(ctx context.Context, in *runtimeapi.RemoveContainerRequest, o ...grpc.CallOption) (*runtimeapi.RemoveContainerResponse, error) {
	for _, c := range p.note() {
		if c.GetId() == in.GetContainerId() && c.running() {
			p.fault("RemoveContainer of running %s", c.describe())
		}
	}
	return pass(ctx, p, "RemoveContainer", p.nameOf(in.GetContainerId()), func(ctx context.Context) (*runtimeapi.RemoveContainerResponse, error) {
		return p.RuntimeServiceClient.RemoveContainer(ctx, in, o...)
	})
}

func (p *spy) ListContainers(ctx context.Context, in *runtimeapi.ListContainersRequest, o ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	return pass(ctx, p, "ListContainers", "", func(ctx context.Context) (*runtimeapi.ListContainersResponse, error) {
		return p.RuntimeServiceClient.ListContainers(ctx, in, o...)
	})
}

func (p *spy) ExecSync(ctx context.Context, in *runtimeapi.ExecSyncRequest, o ...grpc.CallOption) (*runtimeapi.ExecSyncResponse, error) {
	return pass(ctx, p, "ExecSync", p.nameOf(in.GetContainerId()), func(ctx context.Context) (*runtimeapi.ExecSyncResponse, error) {
		return p.RuntimeServiceClient.ExecSync(ctx, in, o...)
	})
}

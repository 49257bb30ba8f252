// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/node/env"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Reasons a container could not be started for, as the kubelet names them.
const (
	reasonConfig = "CreateContainerConfigError"
	reasonCreate = "CreateContainerError"
	reasonRun    = "RunContainerError"
)

// member is a container of a pod with its place in it.
type member struct {
	spec   *corev1.Container
	kind   podspec.Kind
	path   string // the field path that events name
	target string // of an ephemeral container: whose processes it is to see
}

func containerOf(pod *corev1.Pod, name string) (member, error) {
	ref, ok := podspec.FindContainer(&pod.Spec, name)
	if !ok {
		return member{}, fmt.Errorf("pod %s/%s has no container %s", pod.Namespace, pod.Name, name)
	}
	return member{ref.Container, ref.Kind, fmt.Sprintf("spec.%s{%s}", ref.Kind.List(), name), ref.Target}, nil
}

// startContainer creates the attempt unless it is there, and starts it. The runtime reserves (name, attempt), so a
// create that was cut off and is done again fails rather than making a second one.
func (r *Runner) startContainer(ctx context.Context, t work.Task) error {
	c, err := containerOf(t.Pod, t.Container)
	if err != nil {
		return err
	}
	tell := func(kind, reason, format string, args ...any) {
		r.Events.Event(t.Pod, c.path, kind, reason, fmt.Sprintf(format, args...))
	}
	id := existing(t)
	if id == "" {
		if id, err = r.createContainer(ctx, t, c); err != nil {
			if ctx.Err() == nil {
				tell(corev1.EventTypeWarning, "Failed", "Error: %v", err)
			}
			return err
		}
		tell(corev1.EventTypeNormal, "Created", "Container created")
	}
	if _, err := r.CRI.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		fault := startFault(err)
		if ctx.Err() == nil {
			tell(corev1.EventTypeWarning, "Failed", "Error: %s", fault)
			r.dropUnstarted(ctx, id)
		}
		return &fail{reasonRun, errors.New(fault)}
	}
	if c.kind == podspec.Ephemeral {
		r.limitPIDs(t.Pod, t.Container, id)
	}
	if r.CPUs != nil {
		r.CPUs.Started(t.Pod.UID, t.Container, id)
	}
	if r.Started != nil {
		r.Started(t.Pod, t.Container, t.Attempt, id)
	}
	tell(corev1.EventTypeNormal, "Started", "Container started")
	r.Logs.link(t.Pod, t.Container, id, t.Attempt)
	return nil
}

// startFault is what the runtime says of a container that it could not start, without the container's id, which is
// another one at each try: the same fault has the same words, so that its events are counted.
func startFault(err error) string {
	words := cri.Message(err)
	if about, rest, ok := strings.Cut(words, `": `); ok && rest != "" &&
		strings.HasPrefix(about, `failed to start containerd task "`) {
		return rest
	}
	return words
}

// limitPIDs bounds the processes of a debug container where the CRI cannot (EC-19). One whose limit cannot be set runs
// with its pod's.
func (r *Runner) limitPIDs(pod *corev1.Pod, container, id string) {
	if r.Cgroups == nil {
		return
	}
	if err := r.Cgroups.LimitPIDs(r.Cgroups.ParentOf(pod), id, r.Node.Cgroup.Debug.PIDs); err != nil {
		r.Logger.Warn("a debug container has no limit of processes of its own", "pod", pod.Name, "container", container,
			"err", err)
	}
}

// existing returns the id of the attempt if it was created before, by a call that was cut off.
func existing(t work.Task) string {
	for i := range t.Seen.Containers {
		if c := &t.Seen.Containers[i]; c.Name == t.Container && c.Attempt == t.Attempt {
			return c.ID
		}
	}
	return ""
}

// dropUnstarted removes a container whose start failed without leaving an exit behind, so that its attempt can be
// made again. One that the runtime shows as exited stays: it is the evidence.
func (r *Runner) dropUnstarted(ctx context.Context, id string) {
	s, err := r.CRI.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil || s.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_CREATED {
		return
	}
	if _, err := r.CRI.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		r.Logger.Warn("cannot remove a container that did not start", "container", id, "err", err)
	}
}

func (r *Runner) createContainer(ctx context.Context, t work.Task, c member) (string, error) {
	box, err := readyBox(t)
	if err != nil {
		return "", &fail{reasonCreate, err}
	}
	in, err := r.gather(ctx, t, c, box)
	if err != nil {
		return "", &fail{reasonConfig, err}
	}
	if NeedsUser(t.Pod, c.spec, c.kind, in.Image) {
		in.User = r.DebugUser(ctx, t.Pod, t.Seen, c.target, c.spec.Image)
	}
	if in.TargetID, err = targetOf(t, c); err != nil {
		return "", &fail{reasonCreate, err}
	}
	if err := r.Logs.makeFor(t.Pod, t.Container); err != nil {
		return "", &fail{reasonCreate, err}
	}
	if r.Devices != nil && c.kind != podspec.Ephemeral {
		if in.Devices, err = r.Devices.Give(ctx, t.Pod, c.spec); err != nil {
			return "", &fail{reasonCreate, err}
		}
	}
	if r.CPUs != nil {
		if in.CPUs, in.Own, err = r.CPUs.Give(t.Pod, c.spec, c.kind); err != nil {
			return "", &fail{reasonCreate, err}
		}
	}
	if r.Memory != nil && c.kind != podspec.Ephemeral {
		in.Memory = r.Memory.Nodes(t.Pod.UID, t.Container)
	}
	config, err := ContainerConfig(in)
	if err != nil {
		return "", &fail{reasonConfig, err}
	}
	if err := r.forgetVerdict(t); err != nil {
		return "", &fail{reasonCreate, err}
	}
	made, err := r.createRequest(ctx, t.Pod, &runtimeapi.CreateContainerRequest{
		PodSandboxId: box.ID, Config: config,
		SandboxConfig: SandboxConfig(r.sandboxInput(t.Pod, box.Attempt, in.Users))})
	if err != nil && in.TargetID != "" { // also from a runtime that does not know the mode (EC-25)
		return "",
			&fail{reasonCreate, fmt.Errorf("with PID namespace mode TARGET, to see the processes of container %q: %s",
				c.target, cri.Message(err))}
	}
	if err != nil {
		return "", &fail{reasonCreate, errors.New(cri.Message(err))}
	}
	if r.CPUs != nil {
		r.CPUs.Made(made.GetContainerId(), in.CPUs)
	}
	return made.GetContainerId(), nil
}

// targetOf finds the running container that c is to join. Its full id is what the runtime is given (PID-08). In a pod
// whose containers share their processes c sees the target's without joining anybody.
func targetOf(t work.Task, c member) (string, error) {
	if c.target == "" || podspec.NamespaceModes(t.Pod).PID != podspec.NamespaceContainer {
		return "", nil
	}
	for i := range t.Seen.Containers {
		if x := &t.Seen.Containers[i]; x.Name == c.target && x.Running() {
			return x.ID, nil
		}
	}
	return "", fmt.Errorf("target container %q is not running: its processes can be joined only while it runs",
		c.target)
}

// readyBox returns the sandbox to create the container in.
func readyBox(t work.Task) (*plan.Sandbox, error) {
	var box *plan.Sandbox
	for i := range t.Seen.Sandboxes {
		if s := &t.Seen.Sandboxes[i]; box == nil || s.Attempt > box.Attempt {
			box = s
		}
	}
	if box == nil || !box.Ready {
		return nil, errors.New("the pod's sandbox is not ready")
	}
	return box, nil
}

// gather collects what the container's config is made of.
func (r *Runner) gather(ctx context.Context, t work.Task, c member, box *plan.Sandbox) (ContainerInput, error) {
	in := ContainerInput{Pod: t.Pod, Container: c.spec, Kind: c.kind, Attempt: t.Attempt, Streak: t.Streak,
		Round: t.Round, Node: r.Node}
	ips := box.IPs
	if t.Pod.Spec.HostNetwork {
		ips = r.Node.IPs
	}
	var err error
	if in.Users, err = r.UsersOf(t.Pod); err != nil {
		return in, err
	}
	if in.Image, err = r.imageOf(ctx, c.spec.Image); err != nil {
		return in, err
	}
	var services []*corev1.Service
	if r.Services != nil {
		services = r.Services()
	}
	in.Env, err = env.Build(env.Input{Pod: t.Pod, Container: c.spec, PodIPs: ips, HostIPs: r.Node.IPs,
		Allocatable: r.Node.Allocatable, Services: services,
		ConfigMap: func(name string) (*corev1.ConfigMap, error) {
			return r.Sources.ConfigMap(ctx, t.Pod.Namespace, name)
		},
		Secret: func(name string) (*corev1.Secret, error) { return r.Sources.Secret(ctx, t.Pod.Namespace, name) },
		File:   func(volume, path string) ([]byte, error) { return r.Volumes.ReadFile(t.Pod, volume, path) },
		Skipped: func(source string, names []string) {
			r.Events.Event(t.Pod, c.path, corev1.EventTypeWarning, "InvalidEnvironmentVariableNames",
				fmt.Sprintf("Keys %v from the EnvFrom source %s were skipped since they are considered invalid environment variable names.", names, source))
		}})
	if err != nil {
		return in, err
	}
	if in.Mounts, err = r.Volumes.Mounts(ctx, t.Pod, c.spec, in.Env); err != nil {
		return in, err
	}
	if in.BlockDevices, err = r.Volumes.Devices(t.Pod, c.spec); err != nil {
		return in, err
	}
	if err = r.resolveImages(ctx, in.Mounts); err != nil {
		return in, err
	}
	if in.HostsFile, err = r.Volumes.WriteEtcHosts(t.Pod, ips, r.Node.ClusterDomain); err != nil {
		return in, err
	}
	in.TerminationLog, err = r.Volumes.TerminationLog(t.Pod.UID, c.spec.Name, t.Attempt)
	return in, err
}

// imageOf asks the runtime for an image that was made present just before, by the very name that was checked then.
func (r *Runner) imageOf(ctx context.Context, image string) (*runtimeapi.Image, error) {
	s,
		err := r.CRI.Images.ImageStatus(ctx,
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: imagename.Asked(image)}})
	if err != nil {
		return nil, fmt.Errorf("image %s: %s", image, cri.Message(err))
	}
	if s.GetImage() == nil {
		return nil, fmt.Errorf("image %s will be pulled again: %w", image, work.ErrImageGone)
	}
	return s.GetImage(), nil
}

// stopContainer asks the container to stop and has it killed at the deadline. When the deadline is brought forward, a
// second call with the shorter time overtakes the first.
func (r *Runner) stopContainer(ctx context.Context, t work.Task) error {
	id := existing(t)
	if id == "" {
		return nil // gone already
	}
	r.keepVerdict(t)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	calls := 0
	stop := func(until time.Time) {
		calls++
		go func() {
			leave, err := r.stops.enter(ctx, t.Pod.UID)
			if err != nil {
				done <- err
				return
			}
			defer leave()
			seconds := int64((time.Until(until) + time.Second - 1) / time.Second)
			_, err = r.CRI.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id,
				Timeout: max(seconds, 0)})
			done <- err
		}()
	}
	stop(t.Until)
	for {
		select {
		case until := <-t.Sooner:
			stop(until)
		case err := <-done:
			if calls--; err == nil || cri.NotFound(err) {
				cancel()
				for ; calls > 0; calls-- {
					<-done
				}
				return nil
			}
			if calls == 0 {
				return fmt.Errorf("stopping container %s: %s", t.Container, cri.Message(err))
			}
		}
	}
}

func (r *Runner) removeContainer(ctx context.Context, t work.Task) error {
	id := existing(t)
	if id == "" {
		return nil
	}
	_, err := r.CRI.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	if err != nil && !cri.NotFound(err) {
		return fmt.Errorf("removing container %s: %s", t.Container, cri.Message(err))
	}
	r.Logs.drop(t.Pod, t.Container, id, t.Attempt)
	if err := os.Remove(r.verdictFile(t.Pod, t.Container, t.Attempt)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what container %s was killed for: %w", t.Container, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/cgroup"
	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/hook"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/memory"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/probe"
	"github.com/wherryproject/wherry/internal/node/refs"
	"github.com/wherryproject/wherry/internal/node/userns"
	"github.com/wherryproject/wherry/internal/node/volume"
	"github.com/wherryproject/wherry/internal/node/work"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Recorder records Kubernetes events.
type Recorder interface {
	// Event records an event on the pod or, with a container's field path, on that container of it. It must not block.
	Event(pod *corev1.Pod, fieldPath, eventType, reason, message string)
}

// Config is what a Runner works with. All fields but Users, Devices, CPUs, Memory, Services, HandlerOf, Cgroups,
// Started and KeepAllocated are required.
type Config struct {
	CRI      *cri.Client
	Images   *image.Puller
	Prober   *probe.Prober
	Hooks    *hook.Runner
	Volumes  *volume.Manager
	Users    *userns.Pool // nil: no pod has user IDs of its own
	Sources  *refs.Sources
	Devices  *devices.Manager         // nil: there are no device plug-ins
	CPUs     *cpus.Manager            // nil: nobody has CPUs to himself
	Memory   *memory.Manager          // nil: everybody may use that of all NUMA nodes
	Services func() []*corev1.Service // of all namespaces; nil for none
	// HandlerOf returns the handler of a runtime class; nil: pods that name one are not run.
	HandlerOf func(ctx context.Context, class string) (string, error)
	Cgroups   cgroup.Driver // nil: the runtime's default parent
	Events    Recorder
	// Started is called when the runtime has started an attempt of a container; nil: nobody is told. It must not block.
	Started func(pod *corev1.Pod, container string, attempt uint32, id string)
	// KeepAllocated writes down, in the pod's folder, what the node has set aside for the pod; nil: nobody does.
	KeepAllocated func(pod *corev1.Pod) error
	Logs          LogFolders
	// PodsFolder holds one folder per pod, as Volumes has it.
	PodsFolder string
	Node       Node
	Logger     *slog.Logger
}

// Node is what a pod's configs depend on besides the pod.
type Node struct {
	IPs           []string
	Allocatable   corev1.ResourceList
	Cgroup        cgroup.Node
	DebugImages   image.AllowList // of ephemeral containers
	ClusterDomain string
	ClusterDNS    []string
	HostDNS       *runtimeapi.DNSConfig // of the node's resolv.conf
	SeccompDir    string                // below which Localhost profiles lie
}

// Runner runs operations. Safe for concurrent use.
type Runner struct {
	Config
	stops    turnstile
	mounting turnstile // containers that have images mounted
}

// New makes a Runner.
func New(c Config) *Runner {
	return &Runner{Config: c, stops: turnstile{atOnce: stopsAtOnce, turn: stopTurn}, mounting: turnstile{atOnce: 1}}
}

// Do runs one operation to its end.
func (r *Runner) Do(ctx context.Context, t work.Task) error {
	switch t.Verb {
	case plan.PrepareVolumes:
		return r.prepareVolumes(ctx, t)
	case plan.RunSandbox:
		return r.runSandbox(ctx, t)
	case plan.PullImage:
		return r.pullImage(ctx, t)
	case plan.StartContainer:
		return r.startContainer(ctx, t)
	case plan.StopContainer, plan.RemoveContainer, plan.StopSandbox, plan.RemoveSandbox:
		return r.end(ctx, t)
	case plan.ReleaseVolumes:
		return r.releaseVolumes(ctx, t)
	case plan.PostStart, plan.PreStop:
		return r.runHook(ctx, t)
	case plan.Probe:
		return r.tryProbe(ctx, t)
	case plan.ResizePod:
		return r.resizePod(t)
	case plan.ResizeContainer:
		return r.resizeContainer(ctx, t)
	case plan.RemoveLogs:
		return r.Logs.remove(t.Pod)
	}
	return fmt.Errorf("no such operation: %v", t.Verb)
}

// end ends something of the pod's in the runtime. A pod that stays because the runtime cannot end it says why.
func (r *Runner) end(ctx context.Context, t work.Task) (err error) {
	switch t.Verb {
	case plan.StopContainer:
		err = r.stopContainer(ctx, t)
	case plan.RemoveContainer:
		err = r.removeContainer(ctx, t)
	case plan.StopSandbox:
		err = r.stopSandbox(ctx, t)
	case plan.RemoveSandbox:
		err = r.removeSandbox(ctx, t)
	}
	if err != nil && ctx.Err() == nil {
		r.Events.Event(t.Pod, "", corev1.EventTypeWarning, "FailedKillPod", "error killing pod: "+err.Error())
	}
	return err
}

func (r *Runner) prepareVolumes(ctx context.Context, t work.Task) error {
	r.Sources.Register(t.Pod)
	if err := os.MkdirAll(filepath.Join(r.PodsFolder, string(t.Pod.UID)), 0o750); err != nil {
		return err
	}
	if err := r.keepAllocated(t.Pod); err != nil {
		return err
	}
	err := r.Volumes.Prepare(ctx, t.Pod)
	if err != nil && ctx.Err() == nil {
		for _, f := range volume.Failures(err) {
			r.Events.Event(t.Pod, "", corev1.EventTypeWarning, f.Reason(), f.Error())
		}
	}
	return err
}

func (r *Runner) releaseVolumes(ctx context.Context, t work.Task) error {
	r.Sources.Unregister(t.Pod.UID)
	// Before the volumes go, which they may be writing to. A pod without a folder may be somebody else's: a kubelet has
	// its pods' cgroups where the server of the default data folder has them.
	if _, err := os.Lstat(filepath.Join(r.PodsFolder, string(t.Pod.UID))); err == nil && r.Cgroups != nil {
		if err := r.endStrays(ctx, t.Pod); err != nil {
			return err
		}
	}
	if err := r.Volumes.CleanUp(ctx, t.Pod.UID); err != nil {
		if ctx.Err() == nil && t.Pod.Name != "" { // of a pod without a record nobody would see it
			r.Events.Event(t.Pod, "", corev1.EventTypeWarning, "FailedUnMount", err.Error())
		}
		return err
	}
	if r.Devices != nil { // whose record has gone with the folder
		r.Devices.Release(t.Pod.UID)
	}
	if r.CPUs != nil {
		r.CPUs.Release(t.Pod.UID)
	}
	if r.Memory != nil {
		r.Memory.Release(t.Pod.UID)
	}
	if r.Cgroups == nil {
		return nil
	}
	return r.Cgroups.RemovePod(t.Pod.UID)
}

// endStrays ends the processes in a pod's cgroup, when nothing of the pod is known to run: those that the runtime has
// lost sight of with its state.
func (r *Runner) endStrays(ctx context.Context, pod *corev1.Pod) error {
	n, err := r.Cgroups.EndPod(ctx, pod.UID)
	if n > 0 {
		r.Logger.Warn("processes of a pod that the runtime knows nothing of have been ended", "pod",
			pod.Namespace+"/"+pod.Name, "count", n)
	}
	if err != nil {
		return fmt.Errorf("ending processes that the runtime knows nothing of: %w", err)
	}
	return nil
}

func (r *Runner) pullImage(ctx context.Context, t work.Task) error {
	c, err := containerOf(t.Pod, t.Container)
	if err != nil {
		return err
	}
	if c.kind == podspec.Ephemeral {
		// nothing is asked of a registry (DC-13)
		if err := r.Images.Allowed(ctx, r.Node.DebugImages, c.spec.Image); err != nil {
			return &fail{image.ImageNotAllowed, err}
		}
	}
	r.Sources.Register(t.Pod) // its pull secrets
	if err := r.ensure(ctx, t.Pod, c.spec); err != nil {
		return err
	}
	for _, v := range imageVolumes(t.Pod, c.spec) { // by the same rules, and told of in the same words (PL-25)
		stand := &corev1.Container{Name: c.spec.Name, Image: v.Reference, ImagePullPolicy: v.PullPolicy}
		if err := r.ensure(ctx, t.Pod, stand); err != nil {
			return &volumeImage{v.Reference, err}
		}
	}
	return nil
}

func (r *Runner) ensure(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error {
	_, err := r.Images.Ensure(ctx, pod, c)
	if e := (*image.Error)(nil); errors.As(err, &e) {
		return &fail{e.Reason, err} // it has its reason as a field, not as the method that a worker asks for
	}
	return err
}

// fail is an error with the reason that a status shows.
type fail struct {
	reason string
	err    error
}

func (f *fail) Error() string  { return f.err.Error() }
func (f *fail) Unwrap() error  { return f.err }
func (f *fail) Reason() string { return f.reason }

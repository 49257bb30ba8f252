// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/wherryproject/wherry/internal/features"
	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/csi"
	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/figures"
	"github.com/wherryproject/wherry/internal/node/history"
	"github.com/wherryproject/wherry/internal/node/hook"
	"github.com/wherryproject/wherry/internal/node/httpapi"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/imageexec"
	"github.com/wherryproject/wherry/internal/node/logs"
	"github.com/wherryproject/wherry/internal/node/memory"
	"github.com/wherryproject/wherry/internal/node/metrics"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/probe"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
	"github.com/wherryproject/wherry/internal/node/refs"
	"github.com/wherryproject/wherry/internal/node/static"
	"github.com/wherryproject/wherry/internal/node/staticpods"
	"github.com/wherryproject/wherry/internal/node/volume"
	"github.com/wherryproject/wherry/internal/node/work"
)

// Agent runs the pods of one node.
type Agent struct {
	cfg            Config
	log            *slog.Logger
	machine        machine
	runtime        string // its name: the scheme of container ids
	runtimeVersion string
	can            abilities

	*ops.Runner
	metrics      *metrics.Metrics
	history      *history.Recorder
	volumes      *volume.Manager
	sources      *refs.Sources
	events       *recorder
	workers      *work.Set
	pods         cache.SharedIndexInformer
	fresh        *refresher
	serviceCache serviceCache
	api          *httpapi.Server
	statics      *staticpods.Keeper
	mirrors      *mirrors
	execs        *imageexec.Execs // nil where the runtime cannot
	pulls        *pullrecord.Store
	evictor      *evictor
	admission    *admission
	devices      *devices.Manager
	csi          *csi.Manager // nil without an API server
	cpus         *cpus.Manager
	memory       *memory.Manager
	placing      sync.Mutex // held while a pod is placed
	ending       ending
	pressed      chan struct{} // holds one token when a pressure on the node has come or gone
	changes      broadcast
	starts       starts
	figures      *figures.Reader
	cpuRate      rate // of the machine
	ready        chan struct{}
}

// New checks the configuration, looks at the machine and asks the runtime who it is. Nothing of any pod is touched
// before Run.
func New(ctx context.Context, c Config) (*Agent, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	for _, dir := range []string{c.podsFolder(), c.Logs.Pods, filepath.Join(c.DataDir, "seccomp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("agent: %w", err)
		}
	}
	m, err := lookAtMachine(c.DataDir, c.ResolvConf)
	if err != nil {
		return nil, err
	}
	version, err := c.CRI.Version(ctx)
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: c, log: c.Logger, machine: m, runtime: version.GetRuntimeName(),
		runtimeVersion: strings.TrimPrefix(version.GetRuntimeVersion(), "v"), can: abilitiesOf(ctx, c.CRI),
		ready: make(chan struct{}), pressed: make(chan struct{}, 1)}
	a.metrics = metrics.New(a.present)
	a.cfg.CRI = c.CRI.Metered(a.metrics.Called)
	c.CRI = a.cfg.CRI
	a.figures = figures.New(c.CRI.Runtime)
	c.Features.Publish()
	a.history = a.newHistory()
	if err := a.newRunner(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	a.evictor = newEvictor(a)
	a.admission = newAdmission(a.fetchAdmission)
	a.admission.held, a.admission.unfit = a.newAllocations(), a.unfit
	a.mirrors = newMirrors(a)
	if a.statics, err = a.newStatics(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if !a.standalone() {
		a.pods = newPodInformer(c.Client, c.NodeName)
		a.serviceCache = newServiceCache(c.Client)
	}
	if a.api, err = a.newAPI(); err != nil {
		return nil, err
	}
	return a, nil
}

// newRunner makes what pods are run by, and what that needs.
func (a *Agent) newRunner() (err error) {
	c := a.cfg
	a.events = newRecorder(c.Client, c.NodeName, c.Logger)
	a.sources = refs.New(refs.Config{Client: c.Client, Node: c.NodeName, Changed: a.referredChanged, Logger: c.Logger,
		Event: func(pod *corev1.Pod, eventType, reason, message string) {
			a.events.Event(pod, "", eventType, reason, message)
		}})
	var claims volume.Claims
	if !a.standalone() {
		claims = a.sources
	}
	if a.csi, err = a.newCSI(); err != nil {
		return err
	}
	a.volumes = volume.New(volume.Config{Root: c.podsFolder(), Sources: a.sources, Claims: claims, CSI: a.csi,
		Allocatable: a.allocatable(), RecursiveReadOnly: a.can.recursiveReadOnly, Logger: c.Logger})
	a.fresh = newRefresher(a)
	images, err := a.newImages()
	if err != nil {
		return err
	}
	if err := a.newPlaces(); err != nil {
		return err
	}
	a.Runner = ops.New(ops.Config{CRI: c.CRI, Images: images, Prober: probe.New(c.CRI),
		Hooks: hook.New(c.CRI, a.hookNotices()), Volumes: a.volumes, Users: a.userPool(), Devices: a.devices,
		CPUs: a.cpus, Memory: a.memory, Sources: a.sources, Services: a.services,
		HandlerOf: newRuntimeClasses(c.Client).handlerOf, Cgroups: c.Cgroups, Events: a.events,
		Logs: c.Logs, PodsFolder: c.podsFolder(), Node: a.opsNode(), Logger: c.Logger, Started: a.starts.notify,
		KeepAllocated: a.keepAllocated})
	if c.ImageRuntime != nil {
		a.execs = imageexec.New(imageexec.Config{Runtime: c.ImageRuntime, Ops: a.Runner,
			Folder: filepath.Join(c.DataDir, "imageexec"), Logger: c.Logger, Pod: a.podOf, Changed: a.changes.wait,
			Released: a.released, Limits: c.ImageExecs})
	}
	return nil
}

// newImages makes what pulls images, with its record of who has pulled them.
func (a *Agent) newImages() (_ *image.Puller, err error) {
	c := a.cfg
	if a.pulls, err = pullrecord.Open(filepath.Join(c.DataDir, "imagepulls")); err != nil {
		return nil, err
	}
	return image.New(image.Config{Records: a.pulls, Verify: c.VerifyPulls,
		Images: image.Roomy(c.CRI.Images, a.imageDisk), PullSecrets: a.pullSecrets,
		DockerConfig: c.DockerConfig, Progress: a.imageEvent, Logger: c.Logger}), nil
}

// Ready is closed when the node is registered and every pod has its worker.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// Run works until ctx ends. It returns with all its goroutines; pods go on running.
func (a *Agent) Run(ctx context.Context) error {
	if a.cfg.Cgroups != nil {
		if err := a.cfg.Cgroups.Setup(); err != nil {
			return err
		}
	}
	a.events.start()
	defer a.events.stop()
	defer a.sources.Close()
	defer a.figures.Close()
	a.recoverPulls(ctx)
	if a.execs != nil {
		if err := a.execs.Sweep(ctx); err != nil {
			a.log.Warn("cleaning up image execs of an earlier process", "err", err)
		}
	}
	a.endStrays(ctx)
	a.api.Start(a.cfg.Listener)
	if a.cfg.ReadOnly != nil {
		a.api.StartReadOnly(a.cfg.ReadOnly)
	}
	if a.cfg.Local != nil {
		a.api.StartLocal(a.cfg.Local, a.cfg.LocalUser)
	}
	defer a.api.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.workers = work.NewSet(ctx, a, a.log)
	a.workers.Meter = a.metrics
	var loops sync.WaitGroup
	defer loops.Wait()
	defer a.workers.Wait()
	defer cancel()
	a.evictor.begin(ctx)
	// Before the node is registered: the API server may be one of these pods.
	if err := a.startStatics(ctx); err != nil {
		return err
	}
	a.serveKubeletSockets(ctx, &loops)
	loops.Go(func() { a.cpus.Run(ctx) })
	loops.Go(func() { a.statics.Run(ctx) })
	if a.execs != nil {
		loops.Go(func() { a.execs.Run(ctx) })
	}
	loops.Go(func() { a.history.Run(ctx) })
	loops.Go(func() { a.rotateLogs(ctx) })
	loops.Go(func() { a.evictor.run(ctx) })
	loops.Go(func() { a.awaitShutdown(ctx) })
	if !a.standalone() {
		if up, err := a.follow(ctx, &loops); err != nil || !up {
			return err
		}
	}
	loops.Go(func() { a.nudged(ctx) })
	close(a.ready)
	a.log.Info("node is ready", "node", a.cfg.NodeName, "runtime", a.runtime, "version", a.runtimeVersion)
	<-ctx.Done()
	return nil
}

// follow registers the node and follows its pods in the API server. It returns when every pod has its worker; false if
// the agent ends before.
func (a *Agent) follow(ctx context.Context, loops *sync.WaitGroup) (bool, error) {
	if err := a.register(ctx); err != nil {
		return false, err
	}
	loops.Go(func() { a.heartbeat(ctx) })
	loops.Go(func() { a.fresh.run(ctx) })
	nodes := newNodeInformer(a.cfg.Client, a.cfg.NodeName)
	if _, err := nodes.AddEventHandler(a.nodeEvents()); err != nil {
		return false, err
	}
	loops.Go(func() { nodes.RunWithContext(ctx) })
	handler, err := a.pods.AddEventHandler(a.podEvents(ctx))
	if err != nil {
		return false, err
	}
	loops.Go(func() { a.serviceCache.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), a.serviceCache.HasSynced) { // no container starts without their variables
		return false, nil
	}
	loops.Go(func() { a.pods.RunWithContext(ctx) })
	// Not when the cache has all pods, but when their workers have: a pod without a worker is taken down.
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return false, nil
	}
	loops.Go(func() { a.mirrors.run(ctx) })
	return true, nil
}

// podEvents hands pods to their workers. Mirror pods have none: what they show runs as a static pod.
func (a *Agent) podEvents(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if p, ok := o.(*corev1.Pod); ok {
				a.podCame(ctx, p)
			}
		},
		UpdateFunc: func(old, now any) {
			was, ok1 := old.(*corev1.Pod)
			p, ok2 := now.(*corev1.Pod)
			switch {
			case !ok1 || !ok2:
			case was.UID != p.UID:
				a.podWent(was)
				a.podCame(ctx, p)
			case static.IsMirror(p):
				a.mirrors.saw(p)
			default:
				a.vacate(p)
				a.admission.count(p)
				a.admission.resized(p)
				a.history.Pod(p, time.Now())
				a.hand(ctx, p)
				a.fresh.podChanged(was, p)
				a.remember(was, p)
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				a.podWent(p)
			}
		},
	}
}

func (a *Agent) podCame(ctx context.Context, p *corev1.Pod) {
	if static.IsMirror(p) {
		a.mirrors.saw(p)
		return
	}
	a.metrics.Arrived(p, time.Now())
	a.history.Pod(p, time.Now())
	a.arrived(ctx, p)
	a.hand(ctx, p)
	a.remember(nil, p)
}

func (a *Agent) podWent(p *corev1.Pod) {
	if static.IsMirror(p) {
		a.mirrors.gone(p)
		return
	}
	a.metrics.Gone(p.UID)
	a.history.Removed(p, time.Now())
	a.left(p.UID)
	a.admission.forget(p.UID)
	a.workers.Remove(p.UID)
}

// orphanPause is how long the agent gathers nudges of pods it has no worker for before it looks what they are.
const orphanPause = 2 * time.Second

// nudged hands the runtime's nudges to the workers. One for a pod without a worker is most often the echo of a pod that
// has just gone; but a sandbox may also appear late, from a call that was given up, and then somebody has to take it
// down.
func (a *Agent) nudged(ctx context.Context) {
	orphans := time.NewTimer(0)
	defer orphans.Stop()
	nudges := a.cfg.CRI.Nudges(ctx)
	for {
		select {
		case uid, more := <-nudges:
			if !more {
				return
			}
			a.metrics.Nudged(uid)
			if uid == "" || !a.workers.Has(types.UID(uid)) {
				orphans.Reset(orphanPause)
			}
			a.workers.Nudge(types.UID(uid))
		case <-orphans.C:
			a.adoptOrphans(ctx)
		}
	}
}

// referredChanged is called when an object that a pod refers to has changed: its files are rewritten, and what failed
// because it was missing is retried.
func (a *Agent) referredChanged(uid types.UID) {
	if a.workers == nil {
		return
	}
	a.workers.Retry(uid)
	a.fresh.due(uid)
}

// rotateLogs keeps container logs within bounds (PL-09).
func (a *Agent) rotateLogs(ctx context.Context) {
	r := logs.NewRotator(logs.RotatorConfig{MaxSize: a.cfg.LogMaxSize, MaxFiles: a.cfg.LogMaxFiles,
		Runtime: logs.OverCRI(a.cfg.CRI.Runtime, a.cfg.Logs.Pods), Logger: a.log})
	if err := r.Run(ctx); err != nil && ctx.Err() == nil {
		a.log.Error("logs are no longer rotated", "err", err)
	}
}

// Facts is part of [work.Node].
func (a *Agent) Facts() plan.Node {
	_, full := a.evictor.pressed()
	return plan.Node{HostIPs: a.cfg.NodeIPs, Runtime: a.runtime, Full: full, RecursiveReadOnly: a.can.recursiveReadOnly,
		NoHold: !a.cfg.Features.Enabled(features.HoldOnFailure)}
}

// broadcast notifies any number of waiters that something has changed.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// apiPatience is how long one request to the API server may take.
const apiPatience = 15 * time.Second

// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/cri/critest/script"
	pasts "github.com/wherryproject/wherry/internal/node/history"
	"github.com/wherryproject/wherry/internal/node/hook"
	"github.com/wherryproject/wherry/internal/node/image"
	"github.com/wherryproject/wherry/internal/node/ops"
	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/probe"
	"github.com/wherryproject/wherry/internal/node/refs"
	"github.com/wherryproject/wherry/internal/node/volume"
	"github.com/wherryproject/wherry/internal/node/work"
)

// Times of the simulated world. They differ so that no two things happen at one instant by chance, which would make
// the order of a trace, and the number of statuses stored, a matter of luck.
const (
	saveTime     = 3 * time.Millisecond    // to store a status
	watchLag     = 1500 * time.Microsecond // from a change in the API to the worker
	nudgeLag     = 5300 * time.Microsecond // from an event in the runtime to the worker
	opStagger    = time.Millisecond        // between operations on the first and the second container
	debugStagger = 7700 * time.Microsecond // of those on ephemeral containers
	hookStagger  = 370 * time.Microsecond  // from the end of a container to that of its preStop hook
)

// sim is a node with one pod in a bubble of its own time: the fake runtime, an API server, and an agent that can die. All
// of it is what runs on a node, but for the runtime, the API server and the informer.
type sim struct {
	t     *testing.T
	fake  *critest.Fake
	truth *cri.Client // asks the fake past all faults
	spy   *spy
	api   *server
	trace *trace
	dir   string
	begin time.Time
	agent *agent // nil while it is dead
	uid   types.UID
	order []string // names of the pod's containers, gates first

	actor  func(critest.Info) script.Script // if set, says what containers do
	begins func()                           // if set, is told of every operation that starts

	history *pasts.Recorder // if set, keeps the pod's timeline

	mu      sync.Mutex
	scripts map[string][]string // words that containers get from now on, by name
	instant time.Time           // of the last decision
	busy    int                 // decisions at that instant
}

// newSim makes the world. To be called in the bubble.
func newSim(t *testing.T, pod *corev1.Pod) *sim {
	s := &sim{t: t, dir: t.TempDir(), begin: time.Now(), trace: newTrace(), uid: pod.UID, scripts: map[string][]string{}}
	for i := range pod.Spec.InitContainers {
		s.order = append(s.order, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		s.order = append(s.order, pod.Spec.Containers[i].Name)
	}
	s.fake = critest.NewFake(critest.Config{AnyImage: true, Script: s.script})
	for method, d := range map[string]time.Duration{"RunPodSandbox": 300 * time.Millisecond, "PullImage": 200 * time.Millisecond,
		"CreateContainer": 20 * time.Millisecond, "StartContainer": 30 * time.Millisecond, "StopPodSandbox": 40 * time.Millisecond,
		"RemovePodSandbox": 30 * time.Millisecond, "RemoveContainer": 10 * time.Millisecond} {
		s.fake.Delay(method, d)
	}
	s.truth = s.fake.Client()
	s.spy = newSpy(s, pod)
	s.api = newServer(s, pod)
	return s
}

// script lets a test change what the next attempt of a container does. It is called with the fake's lock held.
func (s *sim) script(i critest.Info) (script.Script, bool) {
	if s.actor != nil {
		return s.actor(i), true
	}
	s.mu.Lock()
	words, ok := s.scripts[i.Container]
	s.mu.Unlock()
	if !ok {
		return script.Script{}, false
	}
	sc, err := script.Parse(words)
	if err != nil {
		panic(err) // of the test's own making
	}
	return sc, true
}

func (s *sim) behave(container string, words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[container] = words
}

// find returns the id of the newest attempt of a container.
func (s *sim) find(container string) string {
	id := ""
	for _, c := range s.fake.Containers() {
		if c.Container == container {
			id = c.ID
		}
	}
	return id
}

// decided counts decisions, to tell a worker that spins from one that works.
func (s *sim) decided() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.After(s.instant) {
		s.instant, s.busy = now, 0
	}
	if s.busy++; s.busy > 2000 {
		panic("the worker spins: 2000 decisions at one instant")
	}
}

// live starts an agent, which knows nothing but what the API server and the runtime tell it.
func (s *sim) live() {
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() && *verbose {
		log = slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	client := cri.New(s.spy, s.truth.Images)
	life, kill := context.WithCancel(context.Background())
	a := &agent{sim: s, cancel: cancel, kill: kill, sources: refs.New(refs.Config{})}
	puller := image.New(image.Config{Images: client.Images, Progress: a.imageEvent})
	pods := filepath.Join(s.dir, "pods")
	a.Runner = ops.New(ops.Config{CRI: client, Images: puller, Prober: probe.New(client), Hooks: hook.New(client, hook.Notices{}), Sources: a.sources, Events: a, Logger: log, PodsFolder: pods,
		Volumes: volume.New(volume.Config{Root: pods, Sources: a.sources}), Logs: ops.LogFolders{Pods: filepath.Join(s.dir, "logs")},
		Node: ops.Node{IPs: []string{"192.0.2.1"}, ClusterDomain: "cluster.local"}})
	a.set = work.NewSet(ctx, a, log)
	s.agent = a
	s.spy.mu.Lock()
	s.spy.life = life
	s.spy.mu.Unlock()
	a.loops.Go(func() {
		for uid := range client.Nudges(ctx) {
			time.Sleep(nudgeLag)
			a.set.Nudge(types.UID(uid))
		}
	})
	if pod := s.api.watch(a.changed); pod != nil {
		a.changed(pod)
	} else if s.left() != "" {
		a.set.Adopt(&corev1.Pod{ObjectMeta: s.api.first.ObjectMeta})
	}
}

// die ends the agent; what it has begun in the runtime may go on.
func (s *sim) die() {
	a := s.agent
	if a == nil {
		return
	}
	s.agent = nil
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	s.api.watch(nil)
	a.kill()
	a.cancel()
	a.set.Wait()
	a.loops.Wait()
	a.sources.Close()
}

// left says what there is of the pod on the node, "" for nothing.
func (s *sim) left() string {
	out := ""
	states := map[bool]string{true: "ready", false: "not ready"}
	_, ready := s.fake.Sandboxes()
	for _, r := range ready {
		out += " sandbox(" + states[r] + ")"
	}
	for _, c := range s.statuses() {
		out += " " + c.describe()
	}
	for _, pattern := range []string{"pods/*", "logs/*"} {
		found, _ := filepath.Glob(filepath.Join(s.dir, pattern))
		for range found {
			out += " " + filepath.Dir(pattern)
		}
	}
	return out
}

// agent is a node's agent without informers: it is what node.Agent is to the workers.
type agent struct {
	*ops.Runner
	sim     *sim
	set     *work.Set
	sources *refs.Sources
	cancel  context.CancelFunc // asks it to stop
	kill    context.CancelFunc // ends its process
	loops   sync.WaitGroup

	mu       sync.Mutex
	dead     bool
	starts   int       // operations that are out and may make something run
	deleting time.Time // when the worker was told of the deletion
}

// changed is the informer: it brings a change of the pod to its worker. pod is nil when it is gone.
func (a *agent) changed(pod *corev1.Pod) {
	a.mu.Lock()
	if (pod == nil || pod.DeletionTimestamp != nil) && a.deleting.IsZero() {
		a.deleting = time.Now()
	}
	a.mu.Unlock()
	if pod == nil {
		if h := a.sim.history; h != nil {
			h.Removed(a.sim.api.first, time.Now())
		}
		a.set.Remove(a.sim.uid)
		return
	}
	if h := a.sim.history; h != nil {
		h.Pod(pod, time.Now())
	}
	a.set.Update(pod)
}

// starting counts an operation that may make something run, until what it returns is called.
func (a *agent) starting() func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.starts++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.starts--
	}
}

// deleted tells whether the agent knows of the pod's deletion; until then an old sandbox may go beside a new one. a.mu is held.
func (a *agent) deleted() bool { return !a.deleting.IsZero() }

func (a *agent) isDead() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

func (a *agent) Do(ctx context.Context, t work.Task) error {
	s := a.sim
	a.mu.Lock()
	told := a.deleting
	a.mu.Unlock()
	// What began at the very instant of the news may have been decided before it.
	if _, sidecar, _ := s.spy.isInit(t.Container); !told.IsZero() && told.Before(time.Now()) && !(sidecar && s.api.get() != nil) {
		switch t.Verb { // sidecars are kept up until it is their turn (SC-11)
		case plan.PrepareVolumes, plan.RunSandbox, plan.PullImage, plan.StartContainer:
			s.spy.fault("%v %s begins after the pod's deletion", t.Verb, t.Container)
		}
	}
	switch t.Verb {
	case plan.StartContainer:
		s.spy.checkGates(t.Container)
		defer a.starting()()
	case plan.RunSandbox:
		defer a.starting()()
	case plan.StopSandbox, plan.RemoveSandbox, plan.ReleaseVolumes, plan.RemoveLogs:
		a.mu.Lock()
		if a.starts > 0 && (t.Verb != plan.RemoveSandbox || a.deleted()) {
			s.spy.fault("%v begins while something is being started", t.Verb)
		}
		a.mu.Unlock()
	}
	if t.Verb == plan.RemoveLogs || t.Verb == plan.ReleaseVolumes {
		s.spy.nothingRuns(t.Verb.String())
	}
	if t.Verb != plan.Probe { // a try is one line, when it has returned
		s.trace.add(byStart, "start   %s", describe(t.Op, s.begin))
	}
	if s.begins != nil {
		s.begins()
	}
	pause := time.Duration(slices.Index(s.order, t.Container)+2) * opStagger
	if t.Container != "" && !slices.Contains(s.order, t.Container) { // an ephemeral one
		pause = debugStagger
	}
	time.Sleep(pause)
	err := a.Runner.Do(ctx, t)
	if t.Verb == plan.PreStop {
		pause += hookStagger
	}
	time.Sleep(pause)
	if a.isDead() {
		return err // nobody is there to hear of it
	}
	ended := t.Op
	ended.Until = time.Time{}
	var no *work.ProbeFailure
	switch {
	case t.Verb == plan.Probe && err == nil:
		s.trace.add(byReturn, "yes     %s", describe(t.Op, s.begin))
	case t.Verb == plan.Probe && errors.As(err, &no):
		s.trace.add(byReturn, "no      %s", describe(t.Op, s.begin))
	case err == nil:
		s.trace.add(byReturn, "done    %s", describe(ended, s.begin))
	case ctx.Err() != nil:
		s.trace.add(byReturn, "off     %s", describe(ended, s.begin))
	default:
		reason := ""
		var r interface{ Reason() string }
		if errors.As(err, &r) {
			reason = r.Reason() + ": "
		}
		s.trace.add(byReturn, "FAILED  %s: %s%v", describe(ended, s.begin), reason, err)
	}
	return err
}

func (a *agent) SaveStatus(ctx context.Context, pod *corev1.Pod, from, to *corev1.PodStatus) (*corev1.Pod, error) {
	return a.sim.api.save(ctx, pod, from, to)
}

func (a *agent) Forget(ctx context.Context, pod *corev1.Pod) error {
	return a.sim.api.forget(ctx, pod)
}

func (a *agent) Tell(pod *corev1.Pod, from, to *corev1.PodStatus) {
	if h := a.sim.history; h != nil {
		h.StatusChanged(pod, from, to, time.Now())
	}
}

func (a *agent) Trace(pod *corev1.Pod, e work.Event) {
	if h := a.sim.history; h != nil {
		h.Trace(pod, e)
	}
}

func (a *agent) Allocated(p *corev1.Pod) (*corev1.Pod, *plan.Resize) { return p, nil }

func (a *agent) Refuse(*corev1.Pod) *plan.Refusal { return nil }

func (a *agent) Facts() plan.Node {
	a.sim.decided()
	return plan.Node{HostIPs: []string{"192.0.2.1"}, Runtime: "fake"}
}

// Event is part of ops.Recorder.
func (a *agent) Event(_ *corev1.Pod, fieldPath, eventType, reason, message string) {
	if a.isDead() {
		return
	}
	if fieldPath != "" {
		fieldPath = " " + fieldPath
	}
	a.sim.trace.add(byEvent, "event   %s %s%s: %s", eventType, reason, fieldPath, message)
}

func (a *agent) imageEvent(e image.Event) {
	a.Event(e.Pod, "{"+e.Container+"}", e.Type, e.Reason, e.Message)
}

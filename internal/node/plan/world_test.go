// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The world is a pod on a node, small enough to be explored: what the runtime holds, what the agent remembers, which
// calls are out, and how many faults are left to happen. It is comparable, so that states can be told apart.

const (
	maxContainers = 5
	maxAttempts   = 3
	maxBoxes      = 2
	maxCalls      = 10
	maxFails      = 2
)

type life uint8

const (
	absent life = iota
	created
	running
	exited
)

type attempt struct {
	life       life
	code       uint8
	box        uint8
	round      uint8 // how often all were told to start again before
	judged     bool  // it was to be killed for a fault of its own
	condemned  bool  // and that is kept
	made       uint8 // size that it was made with
	given      uint8 // size that it is given
	lost       bool  // the runtime has lost sight of it, and knows of no start
	filler     uint8 // see world
	start, end int16 // seconds
}

func (a attempt) failed() bool { return a.code != 0 || a.judged }

type box struct {
	there, ready bool
	at           int16 // made
}

type wcall struct {
	out       bool
	verb      Verb
	c         int8 // container's index, or -1
	attempt   uint8
	round     uint8
	done      bool // its effect is complete; it has only to return
	cancelled bool
	early     bool
	verdict   bool
	give      uint8 // size
	until     int16
}

type wfail struct {
	set     bool
	verb    Verb
	c       int8
	attempt uint8
	at      int16
}

// world is hashed many million times, which is done at once for memory that has no holes (TestWorldHasNoHoles), and field by field for
// other: hence its fillers.
type world struct {
	now     int16
	ticks   uint8 // left
	crashes uint8 // containers that may exit by themselves with code 1
	fails   uint8 // operations that may fail
	deaths  uint8 // of the agent
	losses  uint8 // deaths of agent and runtime between two of a container's files
	pauses  uint8 // of the sandbox
	reboots uint8 // of the node
	evicts  uint8 // evictions by the node
	resizes uint8 // changes of what is set aside for the pod
	size    uint8 // what is set aside, which outlives the agent: 0 or 1
	group   uint8 // what the pod's cgroup gives

	deleted, gone bool
	filler        uint8
	deletedAt     int16
	boxes         [maxBoxes]box
	runs          [maxContainers][maxAttempts]attempt
	volumes, logs bool

	// the agent's memory, lost when it dies
	prepared bool
	pulled   [maxContainers]uint8 // attempt + 1
	stopped  [maxBoxes]bool
	left     int16 // LeftAt, or -1
	evicted  int16 // second + 1 of the node's word that the pod has to go
	failed   [maxFails]wfail
	posted   [maxContainers]uint8  // attempt + 1 whose postStart hook is done
	readied  [maxContainers]uint8  // attempt + 1 whose preStop hook is done
	probes   [maxContainers]wprobe // startup probes
	calls    [maxCalls]wcall

	mem, stored int32 // statuses, interned

	// what truly happened, whatever the agent remembers: attempt + 1
	postRan, preRan, passed, told [maxContainers]uint8
	wake                          int16
	filler2                       int16
}

// TestWorldHasNoHoles: all the memory of a world is its fields'.
func TestWorldHasNoHoles(t *testing.T) {
	var size func(reflect.Type) uintptr
	size = func(typ reflect.Type) (sum uintptr) {
		switch typ.Kind() {
		case reflect.Array:
			return uintptr(typ.Len()) * size(typ.Elem())
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(typ) {
				sum += size(f.Type)
			}
			if sum != typ.Size() {
				t.Errorf("%s has %d bytes, its fields %d: give it a filler", typ, typ.Size(), sum)
			}
			return typ.Size()
		}
		return typ.Size()
	}
	size(reflect.TypeFor[world]())
	if w := (world{}); w.filler != 0 || w.filler2 != 0 || w.runs[0][0].filler != 0 { // nor is it used for anything
		t.Error("a filler is filled")
	}
}

// budgets takes over how many faults may happen.
func (w *world) budgets(f world) {
	w.ticks, w.crashes, w.fails, w.deaths, w.losses, w.pauses, w.reboots, w.evicts, w.resizes = f.ticks, f.crashes, f.fails, f.deaths, f.losses, f.pauses, f.reboots, f.evicts, f.resizes
}

// wprobe is what the agent heard of a startup probe.
type wprobe struct {
	attempt        uint8 // + 1
	passed, failed uint8
	early          uint8
	tick, last     int16
}

// scene is what stays the same while a world is explored.
type scene struct {
	pod      *corev1.Pod
	statuses []*corev1.PodStatus
	byKey    map[string]int32
	next     func(Input) Decision
	mutant   func(*Decision, *world)
	sizes    [2]*corev1.Pod // the pod with what may be set aside for it; nil for one that is not resized
	stays    bool           // hold also that a pod that stays comes up
}

func (s *scene) intern(st *corev1.PodStatus) int32 {
	key := statusKey(st)
	if id, ok := s.byKey[key]; ok {
		return id
	}
	id := int32(len(s.statuses))
	s.byKey[key] = id
	s.statuses = append(s.statuses, st.DeepCopy())
	return id
}

func statusKey(st *corev1.PodStatus) string {
	b := make([]byte, 0, 160)
	b = append(b, st.Phase...)
	b = append(b, st.Reason...)
	add := func(list []corev1.ContainerStatus) {
		for i := range list {
			c := &list[i]
			b = fmt.Appendf(b, "|%d%v", c.RestartCount, c.Ready)
			if c.Resources != nil {
				b = append(b, 'r')
			}
			if r := c.Resources; r != nil && len(r.Requests) > 0 {
				b = fmt.Appendf(b, "c%d/%d/%d", c.AllocatedResources.Cpu().MilliValue(), r.Requests.Cpu().MilliValue(), r.Limits.Cpu().MilliValue())
			}
			if c.Started != nil && *c.Started {
				b = append(b, 's')
			}
			for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
				switch {
				case state.Waiting != nil:
					b = append(b, 'w')
					b = append(b, state.Waiting.Reason...)
					b = append(b, state.Waiting.Message...)
				case state.Running != nil:
					b = fmt.Appendf(b, "r%d", state.Running.StartedAt.Unix())
				case state.Terminated != nil:
					b = fmt.Appendf(b, "t%d%v@%d", state.Terminated.ExitCode, toldCondemned(state.Terminated), state.Terminated.FinishedAt.Unix())
				}
			}
		}
	}
	add(st.InitContainerStatuses)
	add(st.ContainerStatuses)
	add(st.EphemeralContainerStatuses)
	for i := range st.Conditions {
		b = fmt.Appendf(b, "%c%s%s", st.Conditions[i].Status[0], st.Conditions[i].Reason, st.Conditions[i].Message)
	}
	if r := st.Resources; r != nil && len(r.Requests) > 0 {
		b = fmt.Appendf(b, "c%d/%d", st.AllocatedResources.Cpu().MilliValue(), r.Requests.Cpu().MilliValue())
	}
	b = append(b, st.PodIP...)
	return string(b)
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(sec int16) time.Time { return epoch.Add(time.Duration(sec) * time.Second) }

func (s *scene) names() []string {
	var names []string
	for _, c := range s.pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range s.pod.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range s.pod.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

func (s *scene) nameOf(c int8) string {
	spec := &s.pod.Spec
	inits, others := int8(len(spec.InitContainers)), int8(s.others())
	switch {
	case c < 0 || int(c-others) >= len(spec.EphemeralContainers):
		return ""
	case c >= others:
		return spec.EphemeralContainers[c-others].Name
	case c >= inits:
		return spec.Containers[c-inits].Name
	}
	return spec.InitContainers[c].Name
}

// others is how many containers there are that are no debug containers; these come last.
func (s *scene) others() int { return len(s.pod.Spec.InitContainers) + len(s.pod.Spec.Containers) }

func (s *scene) indexOf(name string) int8 {
	if name == "" {
		return -1
	}
	return int8(slices.Index(s.names(), name))
}

func boxID(i int) string { return [...]string{"box0", "box1"}[i] }

// input is what the agent would know of this world.
func (s *scene) input(w *world) Input {
	pod := *s.podOf(w.size)
	pod.Status = *s.statuses[w.mem]
	if w.deleted {
		grace := graceSeconds
		pod.DeletionGracePeriodSeconds = &grace
		pod.DeletionTimestamp = &metav1.Time{Time: at(w.deletedAt).Add(time.Duration(grace) * time.Second)}
	}
	in := Input{Pod: &pod, Saved: w.mem == w.stored, Now: at(w.now), Node: Node{HostIPs: []string{"10.0.0.1"}, Runtime: "sim"}}
	in.Seen = s.seen(w)
	if w.evicted > 0 {
		in.Evicted = &Eviction{Message: "low", At: at(w.evicted - 1), Grace: time.Second}
	}
	in.Heard = Heard{Prepared: w.prepared, Pulled: map[string]Pulled{}, Failed: map[Key]Failure{}, Stopped: map[uint32]bool{},
		Done: map[Key]bool{}, Probes: map[ProbeKey]Probed{}}
	s.hearHooks(w, &in.Heard)
	if w.left >= 0 {
		in.Heard.LeftAt = at(w.left)
	}
	for i, p := range w.pulled {
		if p > 0 {
			in.Heard.Pulled[s.nameOf(int8(i))] = Pulled{Attempt: uint32(p - 1), Image: "img"}
		}
	}
	for _, f := range w.failed {
		if f.set {
			in.Heard.Failed[Key{f.verb, s.nameOf(f.c), uint32(f.attempt), NoProbe}] = Failure{Times: 1, At: at(f.at), Reason: reasonErrPull, Message: "failed"}
		}
	}
	for i, st := range w.stopped {
		if st {
			in.Heard.Stopped[uint32(i)] = true
		}
	}
	for _, c := range w.calls {
		if c.out {
			in.Calls = append(in.Calls, Call{Op: s.op(c), Cancelled: c.cancelled})
		}
	}
	return in
}

// hearHooks fills in what the agent heard of hooks and probes.
func (s *scene) hearHooks(w *world, h *Heard) {
	for i := range w.posted {
		name := s.nameOf(int8(i))
		if a := w.posted[i]; a > 0 {
			h.Done[Key{PostStart, name, uint32(a - 1), NoProbe}] = true
		}
		if a := w.readied[i]; a > 0 {
			h.Done[Key{PreStop, name, uint32(a - 1), NoProbe}] = true
		}
		if p := w.probes[i]; p.attempt > 0 {
			h.Probes[ProbeKey{name, uint32(p.attempt - 1), StartupProbe}] = Probed{Last: at(p.last), Tick: at(p.tick), Early: int(p.early),
				Passed: int(p.passed), Failed: int(p.failed)}
		}
	}
}

func (s *scene) op(c wcall) Op {
	o := Op{Verb: c.verb, Container: s.nameOf(c.c), Attempt: uint32(c.attempt), Round: int(c.round)}
	if c.verb == Probe {
		o.Probe = StartupProbe
	}
	if c.verb == StopContainer || c.verb == PreStop {
		o.Until = at(c.until)
	}
	s.giveOp(&o, c)
	if c.verdict {
		o.Verdict = Verdict{"failed", o.Until}
	}
	return o
}

func (s *scene) seen(w *world) Seen {
	seen := Seen{Volumes: w.volumes, Logs: w.logs, Group: s.groupOf(w)}
	for i, b := range w.boxes {
		if b.there {
			seen.Sandboxes = append(seen.Sandboxes, Sandbox{ID: boxID(i), Attempt: uint32(i), Ready: b.ready, CreatedAt: at(b.at), IPs: []string{"10.1.0.2"}})
		}
	}
	for c := range w.runs {
		for a, r := range w.runs[c] {
			if r.life == absent {
				continue
			}
			x := Container{ID: fmt.Sprintf("%d-%d", c, a), Name: s.nameOf(int8(c)), Attempt: uint32(a), SandboxID: boxID(int(r.box)),
				CreatedAt: at(r.start), SpecImage: "img", Streak: a, Round: int(r.round)}
			if r.life >= running && !r.lost {
				x.StartedAt = at(r.start)
			}
			x.Lost = r.lost && r.life < exited
			s.showSize(&x, c, r)
			if r.condemned {
				x.Condemned = Verdict{"failed", at(r.start + int16(graceSeconds))}
			}
			if r.life == exited {
				x.FinishedAt, x.ExitCode = at(r.end), int32(r.code)
			}
			seen.Containers = append(seen.Containers, x)
		}
	}
	return seen
}

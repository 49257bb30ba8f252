// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"flag"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var graceSeconds = int64(30)

// shape makes a pod from letters: i = init, s = sidecar, m = main; S = a sidecar with a startup probe and both hooks, M = a
// main with a preStop hook, H = a main with both hooks, R and J = a main and an init whose exit code 1 starts all again,
// n and r = mains that are resized in place or by a restart, d = a debug
// container, which comes last.
func shape(letters string, policy corev1.RestartPolicy) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u"},
		Spec:   corev1.PodSpec{RestartPolicy: policy, TerminationGracePeriodSeconds: &graceSeconds},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	always, none := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	all := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{1}}}}
	for i, l := range letters {
		c := corev1.Container{Name: fmt.Sprintf("%c%d", l, i), Image: "img"}
		switch l {
		case 'M':
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}
			p.Spec.Containers = append(p.Spec.Containers, c)
		case 'H':
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}, PreStop: &corev1.LifecycleHandler{}}
			p.Spec.Containers = append(p.Spec.Containers, c)
		case 'R':
			c.RestartPolicy, c.RestartPolicyRules = &none, all
			p.Spec.Containers = append(p.Spec.Containers, c)
		case 'J':
			c.RestartPolicy, c.RestartPolicyRules = &none, all
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case 'r':
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
			p.Spec.Containers = append(p.Spec.Containers, c)
		case 'm', 'n':
			p.Spec.Containers = append(p.Spec.Containers, c)
		case 'S':
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}, PreStop: &corev1.LifecycleHandler{}}
			c.StartupProbe = &corev1.Probe{FailureThreshold: 1}
			c.RestartPolicy = &always
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		case 'd':
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Image: c.Image}})
		case 's':
			c.RestartPolicy = &always
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
	return p
}

func newScene(p *corev1.Pod) (*scene, world) {
	s := &scene{pod: p, byKey: map[string]int32{}, next: Next}
	w := world{left: -1, logs: false}
	w.mem = s.intern(&p.Status)
	w.stored = w.mem
	if strings.ContainsAny(fmt.Sprint(s.names()), "nr") {
		s.sized()
	}
	return s, w
}

// explorer searches every world that can follow from a first one.
type explorer struct {
	s     *scene
	seed  maphash.Seed
	seen  map[uint64]bool // true for an end
	fair  map[uint64]bool // a fair run from here was seen to end
	queue []world
	bad   []string
	limit int
	memo  map[uint64]answer // decisions by what the agent can see
	from  map[uint64]step   // how each state was first reached
	now   uint64            // the state whose followers are made
}

// step is one transition.
type step struct {
	before uint64
	what   string
}

// path tells how a state was reached.
func (e *explorer) path(h uint64) string {
	var b []string
	for {
		s, ok := e.from[h]
		if !ok || len(b) > 100 {
			break
		}
		b = append(b, s.what)
		h = s.before
	}
	slices.Reverse(b)
	return strings.Join(b, "; ")
}

// answer is a decision, with its status as the world holds it.
type answer struct {
	d   Decision
	mem int32
}

// decide is Next, asked once for what looks the same to the agent.
func (e *explorer) decide(w *world) answer {
	k := *w
	k.budgets(world{})
	k.wake = 0
	k.stored = 0
	if w.stored == w.mem {
		k.stored = 1
	}
	h := maphash.Comparable(e.seed, k)
	a, ok := e.memo[h]
	if !ok {
		a.d = e.s.next(e.s.input(w))
		st := a.d.Status
		a.mem = e.s.intern(&st)
		a.d.Status, a.d.Why = corev1.PodStatus{}, nil
		e.memo[h] = a
	}
	return a
}

func explore(s *scene, first world, limit int) *explorer {
	e := &explorer{s: s, seed: maphash.MakeSeed(), seen: map[uint64]bool{}, fair: map[uint64]bool{}, limit: limit, memo: map[uint64]answer{}, from: map[uint64]step{}}
	e.settle(&first, "start")
	e.push(first, "")
	for len(e.queue) > 0 && len(e.bad) == 0 && len(e.seen) < limit {
		w := e.queue[len(e.queue)-1]
		e.queue = e.queue[:len(e.queue)-1]
		e.now = maphash.Comparable(e.seed, w)
		e.steps(w, false, func(n world, what string) bool {
			e.settle(&n, what)
			e.push(n, what)
			return len(e.bad) == 0
		})
		if len(e.bad) > 0 {
			break
		}
		if w.deleted || e.evicting(&w) {
			e.ends(w)
		} else if e.s.stays {
			e.comesUp(w)
		}
	}
	return e
}

func (e *explorer) push(w world, what string) {
	h := maphash.Comparable(e.seed, w)
	if _, known := e.seen[h]; !known {
		e.seen[h] = w.gone
		if what != "" {
			e.from[h] = step{e.now, what}
		}
		e.queue = append(e.queue, w)
	}
}

// ends follows one fair run: every call succeeds, every stop is obeyed, every status is stored, time passes. From
// any deleted pod it must come to an end.
func (e *explorer) ends(w world) {
	var path []uint64
	for n := 0; ; n++ {
		h := maphash.Comparable(e.seed, w)
		if e.fair[h] || w.gone || !w.deleted && e.evictedFor(&w) {
			break
		}
		if n > 200 {
			e.bad = append(e.bad, "a fair run of the deletion does not end: "+e.show(&w)+e.path(e.now))
			return
		}
		path = append(path, h)
		moved := false
		e.steps(w, true, func(n world, what string) bool {
			e.settle(&n, what)
			w, moved = n, true
			return false
		})
		if !moved {
			e.bad = append(e.bad, "nothing can happen any more, but the pod is not gone: "+e.show(&w)+e.path(e.now))
			return
		}
	}
	for _, p := range path {
		e.fair[p] = true
	}
}

// settle is the worker: decide, publish, start what is missing, cancel what is not wanted.
func (e *explorer) settle(w *world, what string) {
	if w.gone {
		return
	}
	if w.deleted && w.left < 0 {
		w.left = w.now
	}
	var d Decision
	for again := true; again; {
		saved := w.mem == w.stored
		a := e.decide(w)
		d, w.mem = a.d, a.mem
		again = !saved && w.mem == w.stored // it is stored already: that is a new fact
	}
	w.wake = 0
	if !d.Wake.IsZero() {
		w.wake = int16((d.Wake.Sub(epoch) + time.Second - 1) / time.Second)
	}
	if e.s.mutant != nil {
		d.Ops = slices.Clone(d.Ops)
		e.s.mutant(&d, w)
	}
	wanted := map[Key]Op{}
	for _, o := range d.Ops {
		wanted[o.Key()] = o
	}
	for i := range w.calls {
		c := &w.calls[i]
		if !c.out {
			continue
		}
		o, ok := wanted[e.s.op(*c).Key()]
		if !ok {
			c.cancelled = true
			if !lasting(c.verb) {
				*c = wcall{}
			}
			continue
		}
		if o.Verb == StopContainer {
			c.until = min(c.until, int16(o.Until.Sub(epoch)/time.Second))
		}
		delete(wanted, o.Key())
	}
	keys := make([]Key, 0, len(wanted))
	for k := range wanted {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, k := range keys {
		e.issue(w, wanted[k], what)
	}
	if d.Gone {
		e.checkGone(w, what)
		w.gone = true
	}
	e.checkState(w, what)
	e.sortCalls(w)
}

// sortCalls gives worlds that differ only in the order of calls one form.
func (e *explorer) sortCalls(w *world) {
	slices.SortFunc(w.calls[:], func(a, b wcall) int {
		rank := func(c wcall) int {
			if !c.out {
				return 1 << 20
			}
			return int(c.verb)<<12 | int(c.c+1)<<8 | int(c.attempt)
		}
		return rank(a) - rank(b)
	})
	for i := range w.calls {
		if !w.calls[i].out {
			w.calls[i] = wcall{}
		}
	}
}

func (e *explorer) issue(w *world, o Op, what string) {
	e.checkIssue(w, o, what)
	for i := range w.calls {
		if !w.calls[i].out {
			w.calls[i] = wcall{out: true, verb: o.Verb, c: e.s.indexOf(o.Container), attempt: uint8(o.Attempt), round: uint8(o.Round)}
			if o.Verb == StopContainer {
				w.told[w.calls[i].c] = uint8(o.Attempt) + 1
			}
			w.calls[i].early, w.calls[i].verdict, w.calls[i].give = o.Early, o.Verdict.Given(), e.giveOf(w, o, what)
			if (o.Verb == StopContainer || o.Verb == PreStop) && (e.hookFailed(w, w.calls[i].c, w.calls[i].attempt) ||
				e.s.isSized(int(w.calls[i].c)) && o.Verdict.Given()) {
				w.runs[w.calls[i].c][o.Attempt].judged = true
			}
			if o.Verb == StopContainer || o.Verb == PreStop {
				w.calls[i].until = int16(o.Until.Sub(epoch) / time.Second)
			}
			return
		}
	}
	e.fault(w, what, "more calls out than the model holds")
}

// hookFailed tells whether the agent has heard that this attempt's postStart hook failed.
func (e *explorer) hookFailed(w *world, c int8, attempt uint8) (failed bool) {
	for _, f := range w.failed {
		failed = failed || f.set && f.verb == PostStart && f.c == c && f.attempt == attempt
	}
	return failed
}

func (e *explorer) fault(w *world, what, format string, args ...any) {
	e.bad = append(e.bad, fmt.Sprintf(format, args...)+" (after "+what+")\n  path: "+e.path(e.now)+"\n"+e.show(w))
}

func (e *explorer) show(w *world) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  now=%d deleted=%v boxes=%+v volumes=%v logs=%v prepared=%v\n", w.now, w.deleted, w.boxes, w.volumes, w.logs, w.prepared)
	for i, n := range e.s.names() {
		fmt.Fprintf(&b, "  %s: %+v pulled=%d\n", n, w.runs[i], w.pulled[i])
	}
	for _, c := range w.calls {
		if c.out {
			fmt.Fprintf(&b, "  call %v %s/%d done=%v cancelled=%v until=%d\n", c.verb, e.s.nameOf(c.c), c.attempt, c.done, c.cancelled, c.until)
		}
	}
	fmt.Fprintf(&b, "  status %s\n", statusKey(e.s.statuses[w.mem]))
	return b.String()
}

var deep = flag.Bool("deep", false, "explore pods of five containers and more faults: minutes, and gigabytes")

// TestExplore runs every interleaving of small pods, the agent dying or the node rebooting in every state (PL-02, PL-10, PL-13, SC-02,
// SC-04, SC-19, SC-28). The pods and their faults are so chosen that it takes a minute or two on a quiet machine: each kind of
// fault meets each kind of container, but not all kinds of fault meet each other; -deep has more of that.
func TestExplore(t *testing.T) {
	type pod struct {
		letters string
		policy  corev1.RestartPolicy
		faults  world // budgets
	}
	cases := []pod{
		{"m", corev1.RestartPolicyAlways, world{ticks: 1, crashes: 2, deaths: 1}},
		{"m", corev1.RestartPolicyAlways, world{crashes: 1, deaths: 1, pauses: 1}},
		{"m", corev1.RestartPolicyAlways, world{losses: 1, pauses: 1}},
		{"m", corev1.RestartPolicyNever, world{losses: 1, pauses: 1}},
		{"m", corev1.RestartPolicyOnFailure, world{losses: 1, deaths: 1, crashes: 1}},
		{"im", corev1.RestartPolicyNever, world{losses: 1, pauses: 1}},
		{"sm", corev1.RestartPolicyAlways, world{losses: 2}},
		{"Sm", corev1.RestartPolicyNever, world{losses: 1}},
		{"H", corev1.RestartPolicyOnFailure, world{losses: 1, pauses: 1}},
		{"md", corev1.RestartPolicyNever, world{losses: 1}},
		{"m", corev1.RestartPolicyNever, world{ticks: 1, crashes: 1, fails: 1, deaths: 1}},
		{"im", corev1.RestartPolicyAlways, world{deaths: 1, pauses: 1}},
		{"im", corev1.RestartPolicyNever, world{crashes: 1, fails: 1, deaths: 1}},
		{"im", corev1.RestartPolicyOnFailure, world{ticks: 1, crashes: 1, deaths: 1}},
		{"imm", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
		{"sm", corev1.RestartPolicyAlways, world{crashes: 1, deaths: 1}},
		{"ssm", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
		{"issm", corev1.RestartPolicyNever, world{deaths: 1}},
		{"iimm", corev1.RestartPolicyOnFailure, world{deaths: 1}},
		{"iiim", corev1.RestartPolicyAlways, world{crashes: 1, deaths: 1}},
		{"Sm", corev1.RestartPolicyNever, world{deaths: 1}},
		{"Sm", corev1.RestartPolicyAlways, world{fails: 1}},
		{"SM", corev1.RestartPolicyNever, world{ticks: 1, deaths: 1}},
		{"SSM", corev1.RestartPolicyNever, world{}},
		{"m", corev1.RestartPolicyAlways, world{ticks: 1, crashes: 1, deaths: 1, reboots: 1}},
		{"m", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1, reboots: 2}},
		{"im", corev1.RestartPolicyOnFailure, world{crashes: 1, reboots: 1}},
		{"H", corev1.RestartPolicyOnFailure, world{fails: 1, deaths: 1}},
		{"H", corev1.RestartPolicyNever, world{fails: 1, deaths: 1}},
		{"Hm", corev1.RestartPolicyAlways, world{crashes: 1, deaths: 1}},
		{"Hm", corev1.RestartPolicyOnFailure, world{fails: 1}},
		{"md", corev1.RestartPolicyAlways, world{crashes: 1, deaths: 1}},
		{"md", corev1.RestartPolicyAlways, world{pauses: 1}},
		{"md", corev1.RestartPolicyNever, world{fails: 1, reboots: 1}},
		{"imd", corev1.RestartPolicyOnFailure, world{crashes: 1}},
		{"sm", corev1.RestartPolicyAlways, world{ticks: 1, crashes: 1, reboots: 1}},
		{"ism", corev1.RestartPolicyNever, world{reboots: 1}},
		{"Sm", corev1.RestartPolicyNever, world{reboots: 1}},
		{"m", corev1.RestartPolicyAlways, world{ticks: 1, crashes: 1, deaths: 1, evicts: 1}},
		{"m", corev1.RestartPolicyAlways, world{fails: 1, evicts: 1}},
		{"im", corev1.RestartPolicyOnFailure, world{evicts: 1, reboots: 1}},
		{"sm", corev1.RestartPolicyAlways, world{ticks: 1, evicts: 1}},
		{"md", corev1.RestartPolicyNever, world{deaths: 1, evicts: 1}},
		{"R", corev1.RestartPolicyNever, world{crashes: 2, deaths: 1}},
		{"Rm", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
		{"RR", corev1.RestartPolicyAlways, world{crashes: 1}},
		{"iR", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
		{"Jm", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
		{"sJm", corev1.RestartPolicyOnFailure, world{crashes: 1}},
		{"sR", corev1.RestartPolicyNever, world{crashes: 1}},
		{"Rd", corev1.RestartPolicyNever, world{crashes: 1}},
		{"R", corev1.RestartPolicyNever, world{crashes: 1, pauses: 1}},
		{"R", corev1.RestartPolicyNever, world{crashes: 1, reboots: 1}},
		{"Rm", corev1.RestartPolicyNever, world{crashes: 1, fails: 1}},
		{"n", corev1.RestartPolicyAlways, world{resizes: 2, deaths: 1}},
		{"n", corev1.RestartPolicyOnFailure, world{resizes: 1, fails: 1, ticks: 1, crashes: 1}},
		{"r", corev1.RestartPolicyOnFailure, world{resizes: 1, deaths: 1, crashes: 1}},
		{"r", corev1.RestartPolicyAlways, world{resizes: 1, reboots: 1}},
		{"nr", corev1.RestartPolicyAlways, world{resizes: 1, deaths: 1}},
		{"in", corev1.RestartPolicyNever, world{resizes: 2}},
	}
	if *deep {
		cases = []pod{
			{"m", corev1.RestartPolicyAlways, world{ticks: 2, crashes: 2, fails: 2, deaths: 2, pauses: 1}},
			{"im", corev1.RestartPolicyAlways, world{ticks: 1, crashes: 1, fails: 1, deaths: 1, pauses: 1}},
			{"Sm", corev1.RestartPolicyNever, world{ticks: 1, crashes: 1, deaths: 1}},
			{"Sm", corev1.RestartPolicyAlways, world{ticks: 1, fails: 1, deaths: 1}},
			{"SSM", corev1.RestartPolicyNever, world{ticks: 1, crashes: 1}},
			{"issm", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
			{"iimmm", corev1.RestartPolicyOnFailure, world{deaths: 1}},
			{"iissm", corev1.RestartPolicyNever, world{crashes: 1, deaths: 1}},
			{"issm", corev1.RestartPolicyNever, world{deaths: 1, reboots: 1}},
			{"ism", corev1.RestartPolicyOnFailure, world{ticks: 1, crashes: 1, deaths: 1, reboots: 1}},
			{"im", corev1.RestartPolicyAlways, world{ticks: 1, fails: 1, pauses: 1, reboots: 1}},
		}
	}
	// What it has seen stays, so that looking for garbage finds little: a fifth of the time, for half a gigabyte.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for _, c := range cases {
		t.Run(c.letters+"/"+string(c.policy), func(t *testing.T) {
			s, w := newScene(shape(c.letters, c.policy))
			w.budgets(c.faults)
			s.stays = c.faults.losses+c.faults.resizes > 0
			e := explore(s, w, 50_000_000)
			for _, b := range e.bad {
				t.Error(b)
			}
			ends := 0
			for _, gone := range e.seen {
				if gone {
					ends++
				}
			}
			t.Logf("%d states, %d of them ends, %d statuses", len(e.seen), ends, len(s.statuses))
			if ends == 0 {
				t.Error("no run came to an end: the model does not explore what it says")
			}
			if len(e.seen) >= e.limit {
				t.Errorf("stopped at %d states: not every one was explored", e.limit)
			}
		})
	}
}

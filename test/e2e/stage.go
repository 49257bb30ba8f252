// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Stage is a folder on the node in which the containers of one pod keep a journal of what happens to them: the witness
// of orders and times, exact and independent of what the server says. See the tool's act, healthy and tell.
type Stage struct {
	T   testing.TB
	Dir string
}

// NewStage makes the folder. It lies beside the server's and goes with it: the containers that write into it outlive
// subtests.
func (s *Server) NewStage(t testing.TB) *Stage {
	t.Helper()
	dir, err := os.MkdirTemp(s.base, "stage-")
	if err != nil {
		t.Fatal(err)
	}
	return &Stage{t, dir}
}

const journalPath = "/stage/journal"

// Act is a container called name that plays what its flags say.
func (s *Stage) Act(name string, flags ...string) corev1.Container {
	c := Tool(append(append([]string{"act"}, flags...), journalPath, name)...)
	c.Name = name
	c.VolumeMounts = []corev1.VolumeMount{{Name: "stage", MountPath: "/stage"}}
	return c
}

// Pod is a pod of such containers.
func (s *Stage) Pod(name string, mains ...corev1.Container) *corev1.Pod {
	p := NewPod(name, mains...)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "stage",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: s.Dir}}})
	return p
}

// Port is a port as probes name it.
func Port(n int32) intstr.IntOrString { return intstr.FromInt32(n) }

// Sidecar makes a container one, to be given to [WithInit].
func Sidecar(c corev1.Container) corev1.Container {
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

// Exec is a handler that runs the tool.
func Exec(args ...string) *corev1.ExecAction {
	return &corev1.ExecAction{Command: append([]string{"/tool"}, args...)}
}

// Healthy is an exec probe of container name, tried every second.
func Healthy(name string, flags ...string) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 20,
		ProbeHandler: corev1.ProbeHandler{Exec: Exec(append(append([]string{"healthy"}, flags...), journalPath,
			name)...)}}
}

// Tells is a hook by which container name writes what into the journal, and what-done when it is over.
func Tells(name, what string, flags ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: Exec(append(append([]string{"tell"}, flags...), journalPath, name, what)...)}
}

// PreStop gives a container a preStop hook.
func PreStop(c corev1.Container, h *corev1.LifecycleHandler) corev1.Container {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	c.Lifecycle.PreStop = h
	return c
}

// PostStart gives a container a postStart hook.
func PostStart(c corev1.Container, h *corev1.LifecycleHandler) corev1.Container {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	c.Lifecycle.PostStart = h
	return c
}

// Starting gives a container a startup probe.
func Starting(c corev1.Container, p *corev1.Probe) corev1.Container { c.StartupProbe = p; return c }

// Living gives a container a liveness probe.
func Living(c corev1.Container, p *corev1.Probe) corev1.Container { c.LivenessProbe = p; return c }

// Serving gives a container a readiness probe.
func Serving(c corev1.Container, p *corev1.Probe) corev1.Container { c.ReadinessProbe = p; return c }

// Set makes the file NAME.KIND, by which an actor is directed: sick, go.
func (s *Stage) Set(name, kind string) {
	s.T.Helper()
	if err := os.WriteFile(s.file(name, kind), nil, 0o644); err != nil {
		s.T.Fatal(err)
	}
}

// Clear removes it.
func (s *Stage) Clear(name, kind string) {
	s.T.Helper()
	if err := os.Remove(s.file(name, kind)); err != nil {
		s.T.Fatal(err)
	}
}

func (s *Stage) file(name, kind string) string { return filepath.Join(s.Dir, name+"."+kind) }

// Moment is one line of a journal.
type Moment struct {
	At        time.Time
	Who, What string
}

// Play is a journal: what happened, in order.
type Play struct {
	t       testing.TB
	Moments []Moment
}

// Note writes a line of the test's own into the journal.
func (s *Stage) Note(what string) time.Time {
	s.T.Helper()
	now := time.Now()
	f, err := os.OpenFile(filepath.Join(s.Dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		s.T.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%d test %s\n", now.UnixNano(), what); err != nil {
		s.T.Fatal(err)
	}
	return now
}

// Play reads the journal. No two instances of a container may have been there at once.
func (s *Stage) Play() Play {
	s.T.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "journal"))
	if err != nil && !os.IsNotExist(err) {
		s.T.Fatal(err)
	}
	p := Play{t: s.T}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		ns, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			s.T.Fatalf("journal: %q: %v", line, err)
		}
		p.Moments = append(p.Moments, Moment{time.Unix(0, ns), f[1], f[2]})
		if f[2] == "DOUBLE" {
			s.T.Errorf("two instances of container %s were there at once:\n%s", f[1], text)
		}
	}
	// Lines are in order already but where two writers raced.
	slices.SortStableFunc(p.Moments, func(a, b Moment) int { return a.At.Compare(b.At) })
	return p
}

// Await waits until the journal has a line n times. Its file is no API to watch, so this wait polls.
func (s *Stage) Await(who, what string, n int) Play {
	s.T.Helper()
	deadline := time.Now().Add(Timeout)
	for {
		p := s.Play()
		if p.Count(who, what) >= n {
			return p
		}
		if time.Now().After(deadline) {
			s.T.Fatalf("%s %s has not come %d times:\n%s", who, what, n, p)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// AwaitUp waits until the sidecars and mains of a ready pod have come up in their own words too: that a container runs
// is known before its program has begun.
func (s *Stage) AwaitUp(pod *corev1.Pod) {
	s.T.Helper()
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range list {
			if c.RestartPolicy != nil || !isInit(pod, c.Name) {
				s.Await(c.Name, "up", 1)
			}
		}
	}
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
}

// String is the journal with times since its beginning.
func (p Play) String() string {
	var b strings.Builder
	for _, m := range p.Moments {
		fmt.Fprintf(&b, "%8.3f %s %s\n", m.At.Sub(p.Moments[0].At).Seconds(), m.Who, m.What)
	}
	return b.String()
}

// Count is how often something happened.
func (p Play) Count(who, what string) (n int) {
	for _, m := range p.Moments {
		if m.Who == who && m.What == what {
			n++
		}
	}
	return n
}

// Times is when something happened.
func (p Play) Times(who, what string) (out []time.Time) {
	for _, m := range p.Moments {
		if m.Who == who && m.What == what {
			out = append(out, m.At)
		}
	}
	return out
}

// At is when something first happened; it must have.
func (p Play) At(who, what string) time.Time {
	p.t.Helper()
	for _, m := range p.Moments {
		if m.Who == who && m.What == what {
			return m.At
		}
	}
	p.t.Errorf("%s %s did not happen:\n%s", who, what, p)
	return time.Time{}
}

// After is the part of the play from a line of the test's own on.
func (p Play) After(note string) Play {
	p.t.Helper()
	for i, m := range p.Moments {
		if m.Who == "test" && m.What == note {
			return Play{p.t, p.Moments[i:]}
		}
	}
	p.t.Fatalf("no note %s:\n%s", note, p)
	return p
}

// InOrder checks that each of these, given as "who what", happened, and after the one before.
func (p Play) InOrder(rule string, lines ...string) {
	p.t.Helper()
	i := 0
	for _, line := range lines {
		who, what, _ := strings.Cut(line, " ")
		for i < len(p.Moments) && (p.Moments[i].Who != who || p.Moments[i].What != what) {
			i++
		}
		if i == len(p.Moments) {
			p.t.Errorf("%s: %q did not happen after those before it, of %v:\n%s", rule, line, lines, p)
			return
		}
	}
}

// Happened checks that something happened as often as said.
func (p Play) Happened(rule, who, what string, times int) {
	p.t.Helper()
	if n := p.Count(who, what); n != times {
		p.t.Errorf("%s: %s %s happened %d times, want %d:\n%s", rule, who, what, n, times, p)
	}
}

// Gap checks how long after one time another is: not before least, and not after most (on a busy machine).
//
// An upper bound says "not the far longer time that a fault would take"; how fast things are is for the benchmarks.
func (p Play) Gap(rule string, from, to time.Time, least, most time.Duration) {
	p.t.Helper()
	if d := to.Sub(from); d < least || d > most {
		p.t.Errorf("%s: it took %s, want between %s and %s:\n%s", rule, d, least, most, p)
	}
}

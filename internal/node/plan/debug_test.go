// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// debugging adds ephemeral container d, perhaps with a target, and says which run of it is wanted.
func debugging(target string, run podspec.DebugRun) func(*facts) {
	return func(f *facts) {
		f.Pod.Spec.EphemeralContainers = append(f.Pod.Spec.EphemeralContainers, corev1.EphemeralContainer{TargetContainerName: target,
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "img"}})
		if err := podspec.SetDebugRuns(f.Pod, podspec.DebugRuns{"d": run}); err != nil {
			panic(err) // of the test's own making
		}
	}
}

// stopping is a run that is to be stopped in so long from now on.
func stopping(f *facts, run int, in time.Duration) podspec.DebugRun {
	return podspec.DebugRun{Run: run, StopAt: &metav1.Time{Time: f.Now.Add(in)}}
}

// limited is a run with a time limit that was asked for so long ago.
func limited(f *facts, run int, ttl, ago time.Duration) podspec.DebugRun {
	want := podspec.DebugRun{Run: run}
	want.Limit(ttl, f.Now.Add(-ago))
	return want
}

// agentDied takes away all that the agent remembers, and what has exited in the runtime if it is collected.
func agentDied(collected bool) func(*facts) {
	return func(f *facts) {
		f.Heard = Heard{Prepared: true}
		if collected {
			f.Seen.Containers = without(f.Seen.Containers, func(c *Container) bool { return c.Exited() && c.Name == "d" })
		}
	}
}

// shownDebug is what the tables say of the ephemeral container's status: state, last state, restarts, message.
func shownDebug(s *corev1.PodStatus) string {
	if len(s.EphemeralContainerStatuses) == 0 {
		return ""
	}
	c := &s.EphemeralContainerStatuses[0]
	state := func(t corev1.ContainerState) string {
		switch {
		case t.Waiting != nil:
			return strings.TrimSpace(t.Waiting.Reason + " " + t.Waiting.Message)
		case t.Running != nil:
			return "running"
		case t.Terminated != nil:
			return strings.TrimSpace(fmt.Sprintf("exit%d(%s) %s", t.Terminated.ExitCode, t.Terminated.Reason, t.Terminated.Message))
		}
		return ""
	}
	out := state(c.State)
	if last := state(c.LastTerminationState); last != "" {
		out += "; last " + last
	}
	return fmt.Sprintf("%s; restarts %d", out, c.RestartCount)
}

// TestDebugContainers holds what is decided about ephemeral containers.
func TestDebugContainers(t *testing.T) {
	first := podspec.DebugRun{}
	second := podspec.DebugRun{Run: 1}
	up := func() *facts { return about("m", always).boxed().runs("m0", 0) }
	told := func(f *facts) { f.told() }
	const notRunning = `target container "m0" is not running (CrashLoopBackOff): this container starts when it runs; without a target it starts at once`
	for _, c := range []struct {
		name   string
		facts  *facts
		ops    string
		status string
		wake   time.Duration
		events string
	}{
		{name: "EC-10 its image is pulled first", facts: up().but(debugging("", first)),
			ops: "PullImage d/0", status: "ContainerCreating; restarts 0"},
		{name: "EC-10 it starts", facts: up().pulled("d", 0).but(debugging("", first)), ops: "StartContainer d/0", status: "ContainerCreating; restarts 0"},
		{name: "EC-10 also while an init runs", facts: about("im", always).boxed().runs("i0", 0).pulled("d", 0).but(debugging("", first)),
			ops: "StartContainer d/0", status: "ContainerCreating; restarts 0"},
		{name: "EC-10 also while an init fails", facts: about("im", always).boxed().ended("i0", 3, 1, 0).pulled("d", 0).but(debugging("i0", first)).but(func(f *facts) {
			f.Pod.Spec.ShareProcessNamespace = new(true)
		}), ops: "StartContainer d/0", status: "ContainerCreating; restarts 0", wake: 40 * time.Second},
		{name: "EC-10 one that was created and not started is started", facts: up().pulled("d", 0).but(debugging("", first)).but(func(f *facts) { f.container("d", 0) }),
			ops: "StartContainer d/0", status: "ContainerCreating; restarts 0"},
		{name: "DC-09 what runs is left alone", facts: up().runs("d", 0).but(debugging("", first)), ops: "", status: "running; restarts 0"},
		{name: "EC-11 what has ended is not started again", facts: up().ended("d", 0, 1, time.Minute).pulled("d", 1).but(debugging("", first)),
			ops: "", status: "exit1(Error); restarts 0"},
		{name: "EC-11 nor after the agent died", facts: up().ended("d", 0, 1, time.Minute).but(debugging("", first)).but(told).but(agentDied(false)),
			ops: "", status: "exit1(Error); restarts 0"},
		{name: "DC-11 its status stays when the runtime's container is gone", facts: up().ended("d", 0, 3, time.Minute).but(debugging("", first)).but(told).but(agentDied(true)),
			ops: "", status: "exit3(Error); restarts 0"},
		{name: "EC-11 one that ran and is lost to the runtime is over", facts: up().runs("d", 0).but(debugging("", first)).but(told).but(func(f *facts) {
			f.Seen.Containers = without(f.Seen.Containers, func(c *Container) bool { return c.Name == "d" })
		}), ops: "", status: "exit137(ContainerStatusUnknown) The container could not be found in the runtime; its sandbox was lost, probably in a reboot; restarts 0"},
		{name: "EC-13 a new sandbox does not bring it back", facts: about("m", always).boxed().ended("d", 0, 137, time.Minute).boxed().runs("m0", 1).but(debugging("", first)),
			ops: "", status: "exit137(Error); restarts 0"},
		{name: "EC-10 EC-13 one that never ran before its sandbox died is made anew: first its number is freed",
			facts: about("m", always).boxed().but(func(f *facts) { f.container("d", 0) }).boxed().runs("m0", 1).pulled("d", 0).but(debugging("", first)),
			ops:   "RemoveContainer d/0", status: "ContainerCreating; restarts 0"},
		{name: "EC-13 the sandbox has died: it is stopped with the others", facts: up().runs("d", 0).but(debugging("", first)).but(func(f *facts) { f.Seen.Sandboxes[0].Ready = false }),
			ops: "StopContainer d/0 in 30s; StopContainer m0/0 in 30s", status: "running; restarts 0",
			events: "Killing[d] Stopping container d\nKilling[m0] Stopping container m0"},

		{name: "DC-06 its name is used again: the next run starts at once, the one before is the last state",
			facts: up().ended("d", 0, 2, time.Second).pulled("d", 1).but(debugging("", second)), ops: "StartContainer d/1",
			status: "ContainerCreating; last exit2(Error); restarts 1"},
		{name: "DC-06 without the image it is pulled first", facts: up().ended("d", 0, 2, time.Second).but(debugging("", second)), ops: "PullImage d/1",
			status: "ContainerCreating; last exit2(Error); restarts 1"},
		{name: "DC-06 the next run runs", facts: up().ended("d", 0, 2, time.Minute).but(debugging("", first)).but(told).runs("d", 1).but(debugging("", second)), ops: "",
			status: "running; last exit2(Error); restarts 1"},
		{name: "DC-06 it runs with the run before collected", facts: up().ended("d", 0, 2, time.Minute).but(debugging("", first)).but(told).runs("d", 1).but(debugging("", second)).but(agentDied(true)),
			ops: "", status: "running; last exit2(Error); restarts 1"},
		{name: "EC-11 the next run too is started once", facts: up().ended("d", 0, 2, time.Minute).ended("d", 1, 5, time.Second).but(debugging("", second)),
			ops: "RemoveContainer d/0", status: "exit5(Error); restarts 1"},
		{name: "EC-11 also when nothing is known but the stored status", facts: up().ended("d", 1, 5, time.Second).but(debugging("", second)).but(told).but(agentDied(true)),
			ops: "", status: "exit5(Error); restarts 1"},
		{name: "DC-06 after a restart of the agent before the next run began it begins", facts: up().ended("d", 0, 2, time.Minute).but(debugging("", second)).but(told).but(agentDied(true)),
			ops: "PullImage d/1", status: "ContainerCreating; last exit2(Error); restarts 1"},
		{name: "DC-06 DC-08 its time was over while it waited", facts: up().ended("d", 0, 2, time.Hour).but(debugging("", second)).but(told).but(agentDied(true)).but(func(f *facts) {
			f.Pod.Annotations = nil
			debugging("", stopping(f, 1, -time.Minute))(f)
		}), ops: "", status: "exit143(Stopped) it was stopped at 2026-01-02T04:03:05Z, before it had started; last exit2(Error); restarts 1"},
		{name: "DC-06 one that runs is not replaced", facts: up().runs("d", 0).pulled("d", 1).but(debugging("", second)), ops: "", status: "running; restarts 0"},
		{name: "DC-06 a run whose image cannot be had says so", facts: up().ended("d", 0, 2, time.Minute).failed(Op{Verb: PullImage, Container: "d", Attempt: 1}, 1, 0, "ErrImagePull", "no such host").but(debugging("", second)),
			ops: "", status: "ErrImagePull no such host; last exit2(Error); restarts 1", wake: time.Second},

		{name: "DC-08 its time is not over", facts: up().runs("d", 0).but(func(f *facts) { debugging("", stopping(f, 0, time.Minute))(f) }),
			ops: "", status: "running; restarts 0", wake: time.Minute},
		{name: "DC-08 its time is over: it is asked to stop, then killed", facts: up().runs("d", 0).but(func(f *facts) { debugging("", stopping(f, 0, 0))(f) }),
			ops: "StopContainer d/0 in 3s", status: "running; restarts 0",
			events: "Killing[d] Stopping container d: its time was up at 2026-01-02T04:04:05Z, as set by `wherry debug stop` or --ttl"},
		{name: "DC-08 long ago, while no agent was there: it has its grace all the same", facts: up().runs("d", 0).but(func(f *facts) { debugging("", stopping(f, 0, -time.Hour))(f) }),
			ops: "StopContainer d/0 in 3s", status: "running; restarts 0",
			events: "Killing[d] Stopping container d: its time was up at 2026-01-02T03:04:05Z, as set by `wherry debug stop` or --ttl"},
		{name: "DC-08 it has ended", facts: up().ended("d", 0, 143, time.Second).but(func(f *facts) { debugging("", stopping(f, 0, -time.Minute))(f) }),
			ops: "", status: "exit143(Error); restarts 0"},
		{name: "DC-08 its time was over before it started: it never does", facts: up().pulled("d", 0).but(func(f *facts) { debugging("", stopping(f, 0, -time.Minute))(f) }),
			ops: "", status: "exit143(Stopped) it was stopped at 2026-01-02T04:03:05Z, before it had started; restarts 0"},
		{name: "DC-08 a time limit counts from the start: long after it was asked for it has just begun", facts: up().but(func(f *facts) { f.container("d", 0).StartedAt = f.Now.Add(-time.Second) }).but(func(f *facts) { debugging("", limited(f, 0, time.Minute, 10*time.Minute))(f) }),
			ops: "", status: "running; restarts 0", wake: 59 * time.Second},
		{name: "DC-08 and is over then", facts: up().but(func(f *facts) { f.container("d", 0).StartedAt = f.Now.Add(-time.Minute) }).but(func(f *facts) { debugging("", limited(f, 0, time.Minute, 10*time.Minute))(f) }),
			ops: "StopContainer d/0 in 3s", status: "running; restarts 0",
			events: "Killing[d] Stopping container d: its time was up at 2026-01-02T04:04:05Z, as set by `wherry debug stop` or --ttl"},
		{name: "DC-08 also after a restart of the agent", facts: up().but(func(f *facts) { f.container("d", 0).StartedAt = f.Now.Add(-20 * time.Second) }).but(func(f *facts) { debugging("", limited(f, 0, time.Minute, 10*time.Minute))(f) }).but(told).but(agentDied(true)),
			ops: "", status: "running; restarts 0", wake: 40 * time.Second},
		{name: "DC-08 a pull takes longer than the limit: it goes on", facts: up().calling(Op{Verb: PullImage, Container: "d"}).but(func(f *facts) { debugging("", limited(f, 0, time.Minute, 10*time.Minute))(f) }),
			ops: "PullImage d/0", status: "ContainerCreating; restarts 0", wake: 5 * time.Minute},
		{name: "DC-08 a pull that does not end is called off", facts: up().calling(Op{Verb: PullImage, Container: "d"}).but(func(f *facts) { debugging("", limited(f, 0, time.Minute, 15*time.Minute))(f) }),
			ops: "", status: "exit143(Stopped) it could not start by 2026-01-02T04:04:05Z, and will not be started now; restarts 0"},
		{name: "DC-08 the second run has a time of its own", facts: up().ended("d", 0, 2, time.Hour).pulled("d", 1).but(func(f *facts) { debugging("", limited(f, 1, time.Minute, 2*time.Minute))(f) }).but(told),
			ops: "StartContainer d/1", status: "ContainerCreating; last exit2(Error); restarts 1", wake: 13 * time.Minute},
		{name: "DC-08 and its pull is called off", facts: up().calling(Op{Verb: PullImage, Container: "d"}).but(func(f *facts) { debugging("", stopping(f, 0, 0))(f) }),
			ops: "", status: "exit143(Stopped) it was stopped at 2026-01-02T04:04:05Z, before it had started; restarts 0"},
		{name: "DC-08 that stays so after a restart of the agent", facts: up().but(func(f *facts) { debugging("", stopping(f, 0, -time.Minute))(f) }).but(told).but(agentDied(true)),
			ops: "", status: "exit143(Stopped) it was stopped at 2026-01-02T04:03:05Z, before it had started; restarts 0"},
		{name: "DC-06 DC-08 a second run that never started, after one that did", facts: up().ended("d", 0, 2, time.Hour).but(debugging("", first)).but(told).but(func(f *facts) { debugging("", stopping(f, 1, -time.Minute))(f) }),
			ops: "", status: "exit143(Stopped) it was stopped at 2026-01-02T04:03:05Z, before it had started; last exit2(Error); restarts 1"},
		{name: "DC-06 DC-08 a third run after that", facts: up().ended("d", 0, 2, time.Hour).pulled("d", 2).but(func(f *facts) { debugging("", stopping(f, 1, -time.Minute))(f) }).but(told).but(debugging("", podspec.DebugRun{Run: 2})),
			ops: "StartContainer d/2", status: "ContainerCreating; last exit143(Stopped) it was stopped at 2026-01-02T04:03:05Z, before it had started; restarts 2"},

		{name: "PID-07 its target runs", facts: up().pulled("d", 0).but(debugging("m0", first)), ops: "StartContainer d/0", status: "ContainerCreating; restarts 0"},
		{name: "PID-07 its target does not run: it waits, and says for what", facts: about("m", always).boxed().ended("m0", 3, 1, 0).pulled("d", 0).but(debugging("m0", first)), ops: "",
			status: "CreateContainerError " + notRunning + "; restarts 0", wake: 40 * time.Second, events: "Failed[d] Error: " + notRunning},
		{name: "PID-07 its image is pulled meanwhile", facts: about("m", always).boxed().ended("m0", 3, 1, 0).but(debugging("m0", first)), ops: "PullImage d/0",
			status: "CreateContainerError " + notRunning + "; restarts 0", wake: 40 * time.Second, events: "Failed[d] Error: " + notRunning},
		{name: "PID-07 where all share their processes nobody has to run", facts: about("m", always).boxed().ended("m0", 3, 1, 0).pulled("d", 0).but(debugging("m0", first)).but(func(f *facts) { f.Pod.Spec.HostPID = true }),
			ops: "StartContainer d/0", status: "ContainerCreating; restarts 0", wake: 40 * time.Second},

		{name: "DC-13 an image that the node does not take is refused, and not tried again", facts: up().failed(Op{Verb: PullImage, Container: "d"}, 1, time.Minute, "ImageNotAllowed", "only those").but(debugging("", first)),
			ops: "", status: "ImageNotAllowed only those; restarts 0", wake: 59 * time.Minute},
		{name: "EC-25 a container that cannot be created", facts: up().pulled("d", 0).failed(Op{Verb: StartContainer, Container: "d"}, 1, 0, "CreateContainerError", "no TARGET").but(debugging("m0", first)),
			ops: "", status: "CreateContainerError no TARGET; restarts 0", wake: time.Second},
		{name: "a pod that has ended starts none", facts: about("m", never).boxed().ended("m0", 0, 0, 0).pulled("d", 0).but(debugging("", first)),
			ops: "StopSandbox 0", status: "NotStarted not started: the pod stops because its containers have ended; restarts 0"},
		{name: "DC-09 a pod that is deleted stops it with the mains", facts: up().runs("d", 0).but(debugging("", first)).deleted(0),
			ops: "StopContainer d/0 in 30s; StopContainer m0/0 in 30s", status: "running; restarts 0", wake: 30 * time.Second,
			events: "Killing[d] Stopping container d\nKilling[m0] Stopping container m0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.Pod.Spec.EphemeralContainers = c.facts.Pod.Spec.EphemeralContainers[:1]
			d := Next(c.facts.Input)
			if got := opsOf(d, c.facts.Now); got != c.ops {
				t.Errorf("wants %q, not %q", got, c.ops)
			}
			if got := shownDebug(&d.Status); got != c.status {
				t.Errorf("shows\n%s\nwant\n%s", got, c.status)
			}
			if got := d.Wake.Sub(c.facts.Now); c.wake != 0 && got != c.wake || c.wake == 0 && !d.Wake.IsZero() {
				t.Errorf("wakes after %v, want %v", got, c.wake)
			}
			if got := eventsOf(d); got != c.events {
				t.Errorf("tells\n%s\nwant\n%s", got, c.events)
			}
		})
	}
}

// TestDebugPlaysNoPart proves EC-12: phase, conditions and what is done about the others are the same with and without it.
func TestDebugPlaysNoPart(t *testing.T) {
	for name, make := range map[string]func() *facts{
		"running":   func() *facts { return about("sm", always).boxed().runs("s0", 0).runs("m1", 0) },
		"crashing":  func() *facts { return about("m", always).boxed().ended("m0", 3, 1, 0) },
		"init":      func() *facts { return about("im", always).boxed().runs("i0", 0) },
		"completed": func() *facts { return about("m", onFailure).boxed().ended("m0", 0, 0, 0) },
	} {
		for state, add := range map[string]func(*facts) *facts{
			"waiting": func(f *facts) *facts { return f },
			"running": func(f *facts) *facts { return f.runs("d", 0) },
			"failed":  func(f *facts) *facts { return f.ended("d", 0, 1, 0) },
		} {
			t.Run("EC-12 "+name+", debug container "+state, func(t *testing.T) {
				plain, with := Next(make().Input), Next(add(make()).but(debugging("", podspec.DebugRun{})).Input)
				if state == "running" && name == "completed" { // it goes before the sandbox does
					with = Next(make().ended("d", 0, 137, 0).but(debugging("", podspec.DebugRun{})).Input)
				}
				if a, b := shown(&plain.Status), shown(&with.Status); !slices.Equal(a, b) {
					t.Errorf("without %q\nwith    %q", a, b)
				}
				with.Ops = slices.DeleteFunc(with.Ops, func(o Op) bool { return o.Container == "d" })
				if a, b := opsOf(plain, epoch), opsOf(with, epoch); a != b {
					t.Errorf("does %q without it and %q with it", a, b)
				}
			})
		}
	}
}

// BenchmarkNextDebug plans a pod with a hundred ephemeral containers (EC-17), half of which run, with what the API server says of
// them. It is to stay below 1 ms.
func BenchmarkNextDebug(b *testing.B) {
	f := about("m", always).boxed().runs("m0", 0)
	runs := podspec.DebugRuns{}
	for i := range 100 {
		name := fmt.Sprintf("debug-%d", i)
		f.Pod.Spec.EphemeralContainers = append(f.Pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "img"}})
		runs[name] = podspec.DebugRun{StopAt: &metav1.Time{Time: f.Now.Add(time.Hour)}}
		if i%2 == 0 {
			f.runs(name, 0)
		} else {
			f.ended(name, 0, 1, time.Minute)
		}
	}
	if err := podspec.SetDebugRuns(f.Pod, runs); err != nil {
		b.Fatal(err)
	}
	f.told()
	b.ReportAllocs()
	for b.Loop() {
		if d := Next(f.Input); len(d.Ops) != 0 {
			b.Fatal(d.Ops)
		}
	}
}

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
)

// eventsOf lists the events of a decision.
func eventsOf(d Decision) string {
	var out []string
	for _, r := range d.Why {
		if e := r.Event; e != nil {
			out = append(out, fmt.Sprintf("%s[%s] %s", e.Reason, r.Container, e.Message))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func probing(k ProbeKind, name string, attempt uint32) func(*facts) {
	return func(f *facts) {
		p := &corev1.Probe{FailureThreshold: 3, PeriodSeconds: 10}
		spec := append(slices.Clone(f.Pod.Spec.InitContainers), f.Pod.Spec.Containers...)
		for i := range spec {
			c := &spec[i]
			if c.Name != name {
				continue
			}
			switch k {
			case StartupProbe:
				c.StartupProbe = p
			case LivenessProbe:
				c.LivenessProbe = p
			}
		}
		n := len(f.Pod.Spec.InitContainers)
		f.Pod.Spec.InitContainers, f.Pod.Spec.Containers = spec[:n:n], spec[n:]
		f.Heard.Probes[ProbeKey{name, attempt, k}] = Probed{Failed: 3, Last: f.Now, Tick: f.Now, Message: "no"}
	}
}

// hooked gives the first main a preStop hook.
func hooked(f *facts) {
	mains := slices.Clone(f.Pod.Spec.Containers)
	mains[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}}
	f.Pod.Spec.Containers = mains
}

// TestEvents proves what the planner tells the user: why a container is ended, and that grace has run out (SC-24).
func TestEvents(t *testing.T) {
	const always, never = corev1.RestartPolicyAlways, corev1.RestartPolicyNever
	for _, row := range []struct {
		name  string
		facts *facts
		want  string
	}{
		{"nothing happens", about("sm", always).boxed().runs("s0", 0).runs("m1", 0), ""},
		{"PL-10 a deletion: mains are stopped, sidecars not yet", about("sm", always).boxed().runs("s0", 0).runs("m1", 0).deleted(time.Second),
			"Killing[m1] Stopping container m1"},
		{"PL-10 it is told before the preStop hook", about("m", always).boxed().runs("m0", 0).deleted(time.Second).but(hooked),
			"Killing[m0] Stopping container m0"},
		{"SC-24 grace is over", about("sm", always).boxed().runs("s0", 0).runs("m1", 0).deleted(30 * time.Second),
			"ExceededGracePeriod[] Grace period of 30s is over and containers still run: [m1 s0]. They are killed now.\n" +
				"Killing[m1] Stopping container m1\nKilling[s0] Stopping container s0"},
		{"SC-24 only those that run are named", about("sm", always).boxed().runs("s0", 0).ended("m1", 0, 143, 0).deleted(30 * time.Second),
			"ExceededGracePeriod[] Grace period of 30s is over and containers still run: [s0]. They are killed now.\nKilling[s0] Stopping container s0"},
		{"SC-24 the mains have ended and a sidecar does not", about("sm", never).boxed().runs("s0", 0).ended("m1", 0, 0, 31*time.Second),
			"ExceededGracePeriod[] Grace period of 30s is over and containers still run: [s0]. They are killed now.\nKilling[s0] Stopping container s0"},
		{"SC-24 not when all stopped in time", about("sm", always).boxed().ended("s0", 0, 0, 0).ended("m1", 0, 143, 0).deleted(30 * time.Second), ""},
		{"SC-24 not of a pod without a record", about("m", always).boxed().runs("m0", 0).deleted(time.Minute).but(func(f *facts) { f.Removed = true }),
			"Killing[m0] Stopping container m0"},
		{"PL-04 a failed liveness probe", about("m", always).boxed().runs("m0", 0).but(probing(LivenessProbe, "m0", 0)),
			"Killing[m0] Container m0 failed liveness probe, will be restarted"},
		{"PL-04 in a pod that never restarts", about("m", never).boxed().runs("m0", 0).but(probing(LivenessProbe, "m0", 0)),
			"Killing[m0] Container m0 failed liveness probe"},
		{"SC-05 a sidecar of a pod that never restarts", about("sm", never).boxed().runs("s0", 0).runs("m1", 0).but(probing(LivenessProbe, "s0", 0)),
			"Killing[s0] Container s0 failed liveness probe, will be restarted"},
		{"PL-04 a failed startup probe", about("m", always).boxed().runs("m0", 2).but(probing(StartupProbe, "m0", 2)),
			"Killing[m0] Container m0 failed startup probe, will be restarted"},
		{"PL-04 a failed postStart hook", about("m", always).boxed().runs("m0", 0).failed(Op{Verb: PostStart, Container: "m0"}, 1, 0, "", "no"),
			"Killing[m0] Container m0 failed its postStart hook, will be restarted"},
		{"the image was changed, also where nothing is restarted", about("m", never).boxed().runs("m0", 0).but(func(f *facts) { f.Seen.Containers[0].SpecImage = "old" }),
			"Killing[m0] Container m0 definition changed, will be restarted"},
		{"PID-06 the sandbox has died", about("m", always).boxed().runs("m0", 0).but(func(f *facts) { f.Seen.Sandboxes[0].Ready = false }),
			"Killing[m0] Stopping container m0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := eventsOf(Next(row.facts.Input)); got != row.want {
				t.Errorf("tells\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

// PL-20, SC-01: of the containers of a pod that this node has not taken nothing is said, so that clients show why; neither in the
// next decision, which knows its stored status alone. What was begun keeps its statuses, and so does a pod that fails before
// it began for another reason.
func TestRejected(t *testing.T) {
	refused := about("ism", always).but(func(f *facts) { f.Refused = &Refusal{Reason: "OutOfcpu", Message: "no"} })
	for _, when := range []string{"at once", "later"} {
		s := Next(refused.Input).Status
		if s.Phase != corev1.PodFailed || s.Reason != "OutOfcpu" || len(s.InitContainerStatuses)+len(s.ContainerStatuses) > 0 ||
			find(s.Conditions, corev1.PodInitialized) != nil {
			t.Errorf("%s: %+v", when, s)
		}
		if c := find(s.Conditions, corev1.ContainersReady); c == nil || c.Status != corev1.ConditionFalse || c.Reason != "PodFailed" {
			t.Errorf("%s: containers ready: %+v", when, c)
		}
		refused.Pod.Status = s
		refused.Refused = nil // of an agent that has started again since
	}
	for name, f := range map[string]*facts{
		"begun":                  about("m", always).boxed().runs("m0", 0).but(func(f *facts) { f.Refused = &Refusal{Reason: "OutOfcpu"} }),
		"taken":                  about("m", always),
		"failed before it began": about("m", always).but(func(f *facts) { f.Pod.DeletionTimestamp = &metav1.Time{Time: epoch} }),
		"failed, with its statuses": about("m", always).but(func(f *facts) {
			f.Pod.Status.Phase, f.Pod.Status.ContainerStatuses = corev1.PodFailed, []corev1.ContainerStatus{{Name: "m0"}}
		}),
	} {
		if s := Next(f.Input).Status; len(s.ContainerStatuses) != 1 {
			t.Errorf("%s: %d statuses of containers", name, len(s.ContainerStatuses))
		}
	}
}

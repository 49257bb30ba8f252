// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// mutant is a planner with a fault in it.
type mutant struct {
	name    string
	letters string
	policy  corev1.RestartPolicy
	faults  world // budgets
	next    func(Input) Decision
}

// lied is a planner that is told of a world that is not so.
func lied(lie func(*Input)) func(Input) Decision {
	return func(in Input) Decision {
		pod := *in.Pod
		in.Pod = &pod
		lie(&in)
		return Next(in)
	}
}

// edited is a planner whose decisions are tampered with.
func edited(edit func(Input, *Decision)) func(Input) Decision {
	return func(in Input) Decision {
		d := Next(in)
		edit(in, &d)
		return d
	}
}

func without(list []Container, drop func(*Container) bool) (out []Container) {
	for i := range list {
		if !drop(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

func drop(d *Decision, verbs ...Verb) {
	d.Ops = slices.DeleteFunc(slices.Clone(d.Ops), func(o Op) bool { return slices.Contains(verbs, o.Verb) })
}

func leaves(in Input) bool { return in.Pod.DeletionTimestamp != nil }

// mutants are the faults that a planner might have, each the negation of something that the others rely on.
func mutants() []mutant {
	some := world{ticks: 1, crashes: 1, fails: 1, deaths: 1, pauses: 1}
	few := world{crashes: 1}
	return []mutant{
		{"calls are hidden", "m", always, some, lied(func(in *Input) { in.Calls = nil })},
		{"gates are ignored", "im", always, some, lied(func(in *Input) { in.Pod.Spec.InitContainers = nil })},
		{"sidecars are no gates", "sm", always, few, lied(func(in *Input) {
			in.Pod.Spec.Containers = append(slices.Clone(in.Pod.Spec.InitContainers), in.Pod.Spec.Containers...)
			in.Pod.Spec.InitContainers = nil
		})},
		{"mains do not wait for the hook of the one before", "Hm", always, few, lied(func(in *Input) {
			in.Heard.Done = map[Key]bool{{PostStart, "H0", 0, NoProbe}: true}
		})},
		{"what was killed as failed counts as completed", "H", onFailure, world{fails: 1}, lied(func(in *Input) {
			in.Seen.Containers, in.Calls = slices.Clone(in.Seen.Containers), slices.Clone(in.Calls)
			for i := range in.Seen.Containers {
				in.Seen.Containers[i].Condemned = Verdict{}
			}
			for i := range in.Calls {
				in.Calls[i].Verdict = Verdict{}
			}
		})},
		{"verdicts are not kept", "H", never, world{fails: 1, deaths: 1}, edited(func(_ Input, d *Decision) {
			d.Ops = slices.Clone(d.Ops)
			for i := range d.Ops {
				d.Ops[i].Verdict = Verdict{}
			}
		})},
		{"a deletion is ignored", "m", always, some, lied(func(in *Input) { in.Pod.DeletionTimestamp = nil })},
		{"a deletion is ignored by starts", "m", always, some, edited(func(in Input, d *Decision) {
			if leaves(in) {
				pod := *in.Pod
				pod.DeletionTimestamp = nil
				in.Pod = &pod
				for _, o := range Next(in).Ops {
					if o.Verb == StartContainer {
						d.Ops = append(slices.Clone(d.Ops), o)
					}
				}
			}
		})},
		{"sidecars stop in their order of starting", "ssm", always, few, lied(func(in *Input) {
			if leaves(*in) {
				in.Pod.Spec.InitContainers = slices.Clone(in.Pod.Spec.InitContainers)
				slices.Reverse(in.Pod.Spec.InitContainers)
			}
		})},
		{"sidecars stop with the mains", "sm", always, few, edited(func(in Input, d *Decision) {
			for _, c := range in.Seen.Containers {
				if leaves(in) && c.Running() {
					d.Ops = append(slices.Clone(d.Ops), Op{Verb: StopContainer, Container: c.Name, Attempt: c.Attempt, Until: in.Now.Add(30 * time.Second)})
				}
			}
		})},
		{"every status counts as stored", "m", always, some, lied(func(in *Input) { in.Saved = true })},
		{"no status is ever stored", "m", always, some, lied(func(in *Input) { in.Saved = false })},
		{"a completed init counts as failed", "im", always, some, lied(func(in *Input) {
			in.Seen.Containers = slices.Clone(in.Seen.Containers)
			for i := range in.Seen.Containers {
				if c := &in.Seen.Containers[i]; c.Name == "i0" && c.Exited() {
					c.ExitCode = 1
				}
			}
		})},
		{"a failed init counts as completed", "im", always, some, lied(func(in *Input) {
			in.Seen.Containers = slices.Clone(in.Seen.Containers)
			for i := range in.Seen.Containers {
				if in.Seen.Containers[i].Name == "i0" {
					in.Seen.Containers[i].ExitCode = 0
				}
			}
		})},
		{"what runs is not seen", "m", always, some, lied(func(in *Input) {
			in.Seen.Containers = without(in.Seen.Containers, (*Container).Running)
		})},
		{"what has exited is not seen", "im", always, some, lied(func(in *Input) {
			in.Seen.Containers = without(in.Seen.Containers, (*Container).Exited)
		})},
		{"what is created is not seen", "m", always, some, lied(func(in *Input) {
			in.Seen.Containers = without(in.Seen.Containers, func(c *Container) bool { return c.StartedAt.IsZero() })
		})},
		{"the sandbox is stopped as soon as the pod is deleted", "m", always, some, edited(func(in Input, d *Decision) {
			for _, s := range in.Seen.Sandboxes {
				if leaves(in) && s.Ready {
					d.Ops = append(slices.Clone(d.Ops), Op{Verb: StopSandbox, Attempt: s.Attempt})
				}
			}
		})},
		{"the sandbox is removed as soon as the pod is deleted", "m", always, some, edited(func(in Input, d *Decision) {
			for _, s := range in.Seen.Sandboxes {
				if leaves(in) {
					d.Ops = append(slices.Clone(d.Ops), Op{Verb: RemoveSandbox, Attempt: s.Attempt})
				}
			}
		})},
		{"volumes are released as soon as the pod is deleted", "m", always, some, edited(func(in Input, d *Decision) {
			if leaves(in) && in.Seen.Volumes {
				d.Ops = append(slices.Clone(d.Ops), Op{Verb: ReleaseVolumes})
			}
		})},
		{"logs are removed as soon as the pod is deleted", "m", always, some, edited(func(in Input, d *Decision) {
			if leaves(in) && in.Seen.Logs {
				d.Ops = append(slices.Clone(d.Ops), Op{Verb: RemoveLogs})
			}
		})},
		{"a dead sandbox counts as ready", "m", always, some, lied(func(in *Input) {
			in.Seen.Sandboxes = slices.Clone(in.Seen.Sandboxes)
			for i := range in.Seen.Sandboxes {
				in.Seen.Sandboxes[i].Ready = true
			}
		})},
		{"a second sandbox is made beside the first", "m", always, some, edited(func(in Input, d *Decision) {
			if len(in.Seen.Sandboxes) == 1 && !leaves(in) && len(in.Calls) == 0 {
				d.Ops = append(slices.Clone(d.Ops), Op{Verb: RunSandbox, Attempt: 1})
			}
		})},
		{"a new sandbox is made while the old one's containers run", "m", always, some, lied(func(in *Input) {
			in.Seen.Sandboxes = slices.DeleteFunc(slices.Clone(in.Seen.Sandboxes), func(s Sandbox) bool { return !s.Ready })
			in.Seen.Containers = without(in.Seen.Containers, func(*Container) bool { return len(in.Seen.Sandboxes) == 0 })
		})},
		{"the newest that has exited is removed", "m", always, some, edited(func(in Input, d *Decision) {
			for _, c := range in.Seen.Containers {
				if c.Exited() && !leaves(in) {
					d.Ops = append(slices.Clone(d.Ops), Op{Verb: RemoveContainer, Container: c.Name, Attempt: c.Attempt})
				}
			}
		})},
		{"Never counts as Always", "m", never, some, lied(func(in *Input) { in.Pod.Spec.RestartPolicy = always })},
		{"OnFailure counts as Always", "m", onFailure, some, lied(func(in *Input) { in.Pod.Spec.RestartPolicy = always })},
		{"grace has no end", "m", always, some, edited(func(_ Input, d *Decision) {
			d.Ops = slices.Clone(d.Ops)
			for i := range d.Ops {
				if d.Ops[i].Verb == StopContainer {
					d.Ops[i].Until = d.Ops[i].Until.Add(time.Hour)
				}
			}
		})},
		{"what runs is never stopped", "m", always, some, edited(func(_ Input, d *Decision) { drop(d, StopContainer) })},
		{"sandboxes are never removed", "m", always, some, edited(func(_ Input, d *Decision) { drop(d, RemoveSandbox) })},
		{"attempts are not counted", "m", always, some, edited(func(_ Input, d *Decision) {
			d.Ops = slices.Clone(d.Ops)
			for i := range d.Ops {
				if d.Ops[i].Verb == StartContainer {
					d.Ops[i].Attempt = 0
				}
			}
		})},
		{"images are not waited for", "m", always, some, lied(func(in *Input) {
			in.Heard.Pulled = map[string]Pulled{}
			for a := range uint32(maxAttempts) {
				if !slices.ContainsFunc(in.Seen.Containers, func(c Container) bool { return c.Attempt == a }) {
					in.Heard.Pulled["m0"] = Pulled{a, "img"}
					return
				}
			}
		})},
		{"volumes are not waited for", "m", always, some, lied(func(in *Input) { in.Heard.Prepared = true })},
		{"failures are not remembered", "m", always, some, lied(func(in *Input) { in.Heard.Failed = nil })},
		{"nobody wakes", "m", always, some, edited(func(_ Input, d *Decision) { d.Wake = time.Time{} })},
		{"back-off has no length", "m", always, world{ticks: 2, crashes: 2}, edited(func(in Input, d *Decision) {
			later := in
			later.Now = in.Now.Add(time.Hour)
			if !leaves(in) {
				d.Ops = Next(later).Ops
			}
		})},
		{"what ran before a reboot counts as run here", "im", always, world{reboots: 1}, lied(func(in *Input) {
			in.Seen.Sandboxes = slices.Clone(in.Seen.Sandboxes)
			for i := range in.Seen.Sandboxes {
				in.Seen.Sandboxes[i].CreatedAt = epoch
			}
		})},
		{"a reboot makes the stored status void", "m", never, world{crashes: 1, reboots: 1}, lied(func(in *Input) {
			if len(in.Seen.Sandboxes) == 0 && len(in.Calls) == 0 && in.Pod.DeletionTimestamp == nil {
				in.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			}
		})},
		{"back-off does not survive a reboot", "m", always, world{crashes: 2, reboots: 1}, lied(func(in *Input) {
			if len(in.Seen.Containers) == 0 {
				in.Now = in.Now.Add(time.Hour)
			}
		})},
		{"what became of a debug container is forgotten", "md", always, few, lied(func(in *Input) {
			in.Pod.Status.EphemeralContainerStatuses = nil
			in.Seen.Containers = without(in.Seen.Containers, func(c *Container) bool { return c.Name == "d1" && c.Exited() })
		})},
		{"a debug container is restarted", "md", always, few, edited(func(in Input, d *Decision) {
			for _, c := range in.Seen.Containers {
				if c.Name == "d1" && c.Exited() && !leaves(in) && len(in.Calls) == 0 {
					d.Ops = append(slices.Clone(d.Ops), Op{Verb: StartContainer, Container: "d1", Attempt: c.Attempt + 1})
				}
			}
		})},
		{"a debug container of a dead sandbox is started there", "md", always, world{pauses: 1, deaths: 1}, lied(func(in *Input) {
			in.Seen.Containers = slices.Clone(in.Seen.Containers)
			for i := range in.Seen.Containers {
				if c := &in.Seen.Containers[i]; c.Name == "d1" && len(in.Seen.Sandboxes) > 0 {
					c.SandboxID = in.Seen.Sandboxes[len(in.Seen.Sandboxes)-1].ID
				}
			}
		})},
		{"an eviction is forgotten when the agent dies", "m", always, world{deaths: 1, evicts: 1}, lied(func(in *Input) {
			if in.Evicted == nil && in.Pod.Status.Reason == ReasonEvicted && in.Pod.Status.Phase != corev1.PodFailed {
				in.Pod.Status.Reason = ""
			}
		})},
		{"an evicted pod is restarted by its policy", "m", always, world{evicts: 1}, lied(func(in *Input) {
			if len(in.Seen.Containers) > 0 && in.Seen.Containers[0].Exited() {
				in.Evicted, in.Pod.Status.Reason = nil, ""
			}
		})},
		{"a call for all is heard by the one that called alone", "mR", never, few, edited(func(in Input, d *Decision) {
			d.Ops = slices.Clone(d.Ops)
			for i := range d.Ops {
				d.Ops[i].Round = 0
			}
		})},
		{"all start again beside what still runs", "Rm", never, few, lied(func(in *Input) {
			in.Seen.Containers = slices.Clone(in.Seen.Containers)
			for i := range in.Seen.Containers {
				if in.Seen.Containers[i].Running() {
					in.Seen.Containers[i].Round = 1
				}
			}
		})},
		{"inits do not run again with all others", "iR", never, few, lied(func(in *Input) {
			in.Seen.Containers = slices.Clone(in.Seen.Containers)
			for i := range in.Seen.Containers {
				if c := &in.Seen.Containers[i]; c.Name == "i0" && c.Exited() {
					c.Round = roundOf(in)
				}
			}
		})},
		{"the pod's cgroup is not looked at", "n", always, world{resizes: 2}, lied(func(in *Input) { in.Seen.Group = nil })},
		{"what a container is given is not looked at", "n", always, world{resizes: 2}, lied(func(in *Input) {
			in.Seen.Containers = slices.Clone(in.Seen.Containers)
			for i := range in.Seen.Containers {
				in.Seen.Containers[i].Given = nil
			}
		})},
		{"any size is started again", "n", always, world{resizes: 1}, lied(func(in *Input) {
			in.Pod.Spec.Containers = slices.Clone(in.Pod.Spec.Containers)
			in.Pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: "cpu", RestartPolicy: "RestartContainer"}}
		})},
		{"gone is said when the sandbox is", "m", always, some, edited(func(in Input, d *Decision) {
			d.Gone = d.Gone || leaves(in) && len(in.Seen.Sandboxes) == 0
		})},
		{"gone is said while calls are out", "m", always, some, edited(func(in Input, d *Decision) {
			quiet := in
			quiet.Calls = nil
			d.Gone = d.Gone || leaves(in) && Next(quiet).Gone
		})},
	}
}

// TestMutants tests the tests: the explorer must find every planner out that has a fault. One that it does not find means a
// hole in the invariants.
func TestMutants(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			s, w := newScene(shape(m.letters, m.policy))
			s.next = m.next
			w.budgets(m.faults)
			e := explore(s, w, 60_000)
			if len(e.bad) == 0 {
				t.Fatalf("not found out in %d states", len(e.seen))
			}
			first, _, _ := strings.Cut(e.bad[0], "\n")
			t.Logf("found in %d states: %s", len(e.seen), first)
		})
	}
}

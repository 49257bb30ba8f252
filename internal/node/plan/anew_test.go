// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestInitialisedAnew holds what a pod shows of itself from the loss of its sandbox until its mains run again (PL-39).
func TestInitialisedAnew(t *testing.T) {
	dead := func(f *facts) { f.Seen.Sandboxes[len(f.Seen.Sandboxes)-1].Ready = false }
	stopped := func(f *facts) { dead(f); f.Heard.Stopped[0] = true }
	ran := func(f *facts) { f.told(); f.Pod.Status.Phase = corev1.PodRunning }
	pending := func(f *facts) { f.told(); f.Pod.Status.Phase = corev1.PodPending }
	rebooted := func(f *facts) { f.Seen, f.Heard.Prepared = Seen{}, false }
	const fresh = "Initialized=False(ContainersNotInitialized)"
	up := func(policy corev1.RestartPolicy) *facts {
		return about("ism", policy).boxed().ended("i0", 0, 0, time.Minute).runs("s1", 0).runs("m2", 0).but(ran)
	}
	// Its containers were killed with the sandbox, and a new one is there.
	again := func() *facts {
		return about("ism", always).boxed().ended("i0", 0, 0, time.Hour/2).ended("s1", 0, 137, time.Second).ended("m2", 0, 137, time.Second).but(ran).boxed().but(func(f *facts) {
			f.Seen.Sandboxes[0].Ready, f.Seen.Sandboxes[1].CreatedAt = false, f.Now
		})
	}
	for _, c := range []decided{
		{name: "the sandbox is gone, the main still runs", facts: up(always).but(dead), ops: "StopContainer m2/0 in 30s; StopContainer s1/0 in 30s",
			status: []string{"Running", fresh, "i0=PodInitializing", "m2=running"}},
		{name: "nothing runs any more", facts: about("ism", always).boxed().ended("i0", 0, 0, time.Minute).ended("s1", 0, 143, 0).ended("m2", 0, 143, 0).but(ran).but(stopped),
			ops: "PullImage i0/1; RunSandbox 1", status: []string{"Pending", fresh, "i0=PodInitializing", "i0.last=exit0(Completed)", "i0.ready=false", "s1=PodInitializing",
				"m2=PodInitializing", "m2.last=exit143(Error)", "PodReadyToStartContainers=False(PodSandboxNotReady)"}},
		{name: "after a reboot that the runtime remembers nothing of", facts: up(always).but(rebooted), ops: "PrepareVolumes; PullImage i0/1; RunSandbox 0",
			status: []string{"Pending", fresh, "i0=PodInitializing", "m2=PodInitializing", "m2.last=exit137(ContainerStatusUnknown)", "m2.restarts=0"}},
		{name: "in the new sandbox the first init starts", facts: again().pulled("i0", 1), ops: "StartContainer i0/1",
			status: []string{"Pending", fresh, "i0=PodInitializing", "s1=PodInitializing", "m2=PodInitializing"}},
		{name: "and runs", facts: again().runs("i0", 1), status: []string{"Pending", fresh, "i0=running", "i0.restarts=1", "s1=PodInitializing"}},
		{name: "the sidecar follows", facts: again().ended("i0", 1, 0, 0).pulled("s1", 1), ops: "RemoveContainer i0/0; StartContainer s1/1",
			status: []string{"Pending", fresh, "i0=exit0(Completed)", "i0.ready=true", "i0.restarts=1", "m2=PodInitializing"}},
		{name: "then the main", facts: again().ended("i0", 1, 0, 0).runs("s1", 1).pulled("m2", 1), ops: "RemoveContainer i0/0; StartContainer m2/1",
			status: []string{"Initialized=True", "s1.restarts=1", "m2=PodInitializing", "m2.restarts=0"}},
		{name: "and when it runs the pod does", facts: again().ended("i0", 1, 0, 0).runs("s1", 1).runs("m2", 1), ops: "RemoveContainer i0/0",
			status: []string{"Running", "Initialized=True", "m2=running", "m2.restarts=1", "Ready=True"}},
		{name: "a sidecar whose turn it is shows its back-off", facts: again().ended("i0", 1, 0, 0).ended("s1", 3, 1, 0), ops: "RemoveContainer i0/0; RemoveContainer s1/0",
			status: []string{"Pending", "s1=CrashLoopBackOff", "m2=PodInitializing"}, why: "back-off"},
		{name: "an image that cannot be had is said", facts: again().failed(Op{Verb: PullImage, Container: "i0", Attempt: 1}, 1, time.Minute/2, reasonErrPull, "no"), ops: "PullImage i0/1", status: []string{"Pending", "i0=ImagePullBackOff"}},
		{name: "what has ended for good stays", facts: about("imm", onFailure).boxed().ended("i0", 0, 0, time.Minute).ended("m1", 0, 0, time.Minute).ended("m2", 0, 143, 0).but(ran).but(stopped),
			ops: "PullImage i0/1; RunSandbox 1", status: []string{"Running", fresh, "m1=exit0(Completed)", "m2=PodInitializing"}},
		{name: "a pod without gates goes on as Running", facts: about("m", always).boxed().ended("m0", 0, 143, 0).but(ran).but(stopped),
			ops: "PullImage m0/1; RunSandbox 1", status: []string{"Running", "Initialized=True", "m0=ContainerCreating", "m0.last=exit143(Error)"}},
		{name: "a pod that never restarts has failed", facts: about("im", never).boxed().ended("i0", 0, 0, time.Minute).ended("m1", 0, 143, 0).but(ran).but(dead),
			ops: "StopSandbox 0", status: []string{"Failed", "i0=exit0(Completed)", "m1=exit143(Error)", "Initialized=True"}},
		{name: "one that never restarts is not initialised twice", facts: about("iim", never).boxed().ended("i0", 0, 0, time.Minute).but(pending).but(dead),
			ops: "StopSandbox 0", status: []string{"Failed", "i0=exit0(Completed)", "i1=PodInitializing", "m2=PodInitializing"}},
		{name: "nor when all is forgotten", facts: about("im", never).boxed().ended("i0", 0, 0, time.Minute).but(pending).but(rebooted),
			status: []string{"Failed", "i0=exit0(Completed)"}},
		{name: "an init that is stopped with it has failed", facts: about("iim", never).boxed().ended("i0", 0, 0, time.Minute).runs("i1", 0).but(pending).but(dead),
			ops: "StopContainer i1/0 in 30s", status: []string{"Pending", "i0=exit0(Completed)", "i1=running"}},
		{name: "without anything done yet it gets another sandbox", facts: about("im", never).boxed().but(stopped),
			ops: "PullImage i0/0; RunSandbox 1", status: []string{"Pending"}},
		{name: "one that is deleted meanwhile ends as its containers say", facts: again().runs("i0", 1).but(func(f *facts) {
			f.Seen.Containers[len(f.Seen.Containers)-1].FinishedAt = f.Now
		}).deleted(0), ops: "StopSandbox 0; StopSandbox 1", status: []string{"Failed"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

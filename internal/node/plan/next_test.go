// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// facts builds an Input: a pod in the middle of its life, and what is to be different about it.
type facts struct{ Input }

func about(letters string, policy corev1.RestartPolicy) *facts {
	f := &facts{}
	f.Pod = shape(letters, policy)
	start := metav1.NewTime(epoch)
	f.Pod.Status.StartTime = &start
	f.Now = epoch.Add(time.Hour)
	f.Node = Node{HostIPs: []string{"192.0.2.1"}, Runtime: "sim"}
	f.Heard = Heard{Pulled: map[string]Pulled{}, Failed: map[Key]Failure{}, Stopped: map[uint32]bool{}, Done: map[Key]bool{}, Probes: map[ProbeKey]Probed{}}
	return f
}

// boxed gives it a ready sandbox, prepared volumes and a log folder.
func (f *facts) boxed() *facts {
	f.Seen.Sandboxes = append(f.Seen.Sandboxes, Sandbox{ID: fmt.Sprintf("box%d", len(f.Seen.Sandboxes)),
		Attempt: uint32(len(f.Seen.Sandboxes)), Ready: true, CreatedAt: epoch, IPs: []string{"10.1.0.2"}})
	f.Seen.Volumes, f.Seen.Logs, f.Heard.Prepared = true, true, true
	return f
}

func (f *facts) container(name string, attempt uint32) *Container {
	box := ""
	if n := len(f.Seen.Sandboxes); n > 0 {
		box = f.Seen.Sandboxes[n-1].ID
	}
	f.Seen.Containers = append(f.Seen.Containers, Container{ID: fmt.Sprintf("%s-%d", name, attempt), Name: name, Attempt: attempt,
		SandboxID: box, CreatedAt: f.Now.Add(-time.Minute), SpecImage: "img", Image: "img", Streak: int(attempt)})
	return &f.Seen.Containers[len(f.Seen.Containers)-1]
}

// runs adds an attempt that began a minute ago and goes on.
func (f *facts) runs(name string, attempt uint32) *facts {
	c := f.container(name, attempt)
	c.StartedAt = f.Now.Add(-time.Minute)
	return f
}

// ended adds an attempt that ran for a minute and ended some time ago.
func (f *facts) ended(name string, attempt uint32, code int32, ago time.Duration) *facts {
	c := f.container(name, attempt)
	c.FinishedAt = f.Now.Add(-ago)
	c.StartedAt = c.FinishedAt.Add(-time.Minute)
	c.ExitCode, c.Reason = code, "Error"
	if code == 0 {
		c.Reason = "Completed"
	}
	return f
}

func (f *facts) pulled(name string, attempt uint32) *facts {
	f.Heard.Pulled[name] = Pulled{attempt, "img"}
	return f
}

func (f *facts) failed(op Op, times int, ago time.Duration, reason, message string) *facts {
	f.Heard.Failed[op.Key()] = Failure{Times: times, At: f.Now.Add(-ago), Reason: reason, Message: message}
	return f
}

func (f *facts) calling(op Op) *facts {
	f.Calls = append(f.Calls, Call{Op: op})
	return f
}

// deleted some time ago, with a grace of 30 seconds.
func (f *facts) deleted(ago time.Duration) *facts {
	f.Heard.LeftAt = f.Now.Add(-ago)
	f.Pod.DeletionTimestamp = &metav1.Time{Time: f.Heard.LeftAt.Add(30 * time.Second)}
	f.Pod.DeletionGracePeriodSeconds = &graceSeconds
	return f
}

// told makes the status of these facts the stored one: what changes is about what comes next.
func (f *facts) told() *facts {
	f.Pod.Status = Next(f.Input).Status
	f.Saved = true
	return f
}

func (f *facts) but(change func(*facts)) *facts {
	change(f)
	return f
}

func opsOf(d Decision, now time.Time) string {
	var out []string
	for _, o := range d.Ops {
		s := o.Verb.String()
		switch {
		case o.Container != "":
			s += fmt.Sprintf(" %s/%d", o.Container, o.Attempt)
		case o.Verb == RunSandbox || o.Verb == StopSandbox || o.Verb == RemoveSandbox:
			s += fmt.Sprintf(" %d", o.Attempt)
		}
		if !o.Until.IsZero() {
			s += fmt.Sprintf(" in %v", o.Until.Sub(now))
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// shown is what of a status the tables name: the phase, every container's state, every condition.
func shown(s *corev1.PodStatus) []string {
	out := []string{string(s.Phase)}
	if s.Reason != "" {
		out = append(out, "reason="+s.Reason)
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			c := &list[i]
			state := func(t corev1.ContainerState) string {
				switch {
				case t.Waiting != nil:
					return t.Waiting.Reason
				case t.Running != nil:
					return "running"
				case t.Terminated != nil:
					return fmt.Sprintf("exit%d(%s)", t.Terminated.ExitCode, t.Terminated.Reason)
				}
				return ""
			}
			out = append(out, c.Name+"="+state(c.State))
			if last := state(c.LastTerminationState); last != "" {
				out = append(out, c.Name+".last="+last)
			}
			if c.State.Waiting != nil && c.State.Waiting.Message != "" {
				out = append(out, c.Name+":"+c.State.Waiting.Message)
			}
			out = append(out, fmt.Sprintf("%s.ready=%v", c.Name, c.Ready), fmt.Sprintf("%s.restarts=%d", c.Name, c.RestartCount))
		}
	}
	for _, c := range s.Conditions {
		text := fmt.Sprintf("%s=%s", c.Type, c.Status)
		if c.Reason != "" {
			text += "(" + c.Reason + ")"
		}
		out = append(out, text)
	}
	return out
}

const (
	always    = corev1.RestartPolicyAlways
	never     = corev1.RestartPolicyNever
	onFailure = corev1.RestartPolicyOnFailure
)

// TestNext holds decisions against the rules one by one: from these facts, these operations and no others, for these reasons,
// and this status.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name   string // with the rules it proves
		facts  *facts
		ops    string
		why    []string // parts of reasons that must be given
		status []string // what the status must show, see shown
		wake   time.Duration
		flags  string // "ended", "gone"
	}{
		// A pod comes up.
		{name: "PL-01 a new pod gets its volumes, its sandbox and its first images",
			facts: about("mm", always),
			ops:   "PrepareVolumes; PullImage m0/0; PullImage m1/0; RunSandbox 0", why: []string{"waits for its sandbox"},
			status: []string{"Pending", "m0=ContainerCreating", "Initialized=True", "Ready=False(ContainersNotReady)", "PodReadyToStartContainers=False(PodSandboxNotReady)"}},
		{name: "SC-02 with inits, only the first one's image is pulled ahead",
			facts: about("iim", always), ops: "PrepareVolumes; PullImage i0/0; RunSandbox 0",
			status: []string{"Pending", "i0=PodInitializing", "m2=PodInitializing", "Initialized=False(ContainersNotInitialized)"}},
		{name: "SC-28 the first init starts, nothing else",
			facts: about("iim", always).boxed().pulled("i0", 0), ops: "StartContainer i0/0", why: []string{"waits for init container i0"},
			status: []string{"Pending", "PodReadyToStartContainers=True"}},
		{name: "SC-28 while an init runs, nothing else starts",
			facts: about("iim", always).boxed().runs("i0", 0), ops: "", why: []string{"waits for init container i0"},
			status: []string{"Pending", "i0=running", "i1=PodInitializing"}},
		{name: "SC-02 the next init follows one that completed",
			facts: about("iim", always).boxed().ended("i0", 0, 0, 0).pulled("i1", 0), ops: "StartContainer i1/0", why: []string{"waits for init container i1"},
			status: []string{"Pending", "i0=exit0(Completed)", "i0.ready=true", "Initialized=False(ContainersNotInitialized)"}},
		{name: "SC-02 the next follows a sidecar that has started",
			facts: about("sim", always).boxed().runs("s0", 0).pulled("i1", 0), ops: "StartContainer i1/0",
			status: []string{"Pending", "s0=running", "s0.ready=true"}},
		{name: "SC-04 mains start together after the last gate",
			facts: about("ismm", always).boxed().ended("i0", 0, 0, 0).runs("s1", 0).pulled("m2", 0).pulled("m3", 0),
			ops:   "StartContainer m2/0; StartContainer m3/0", status: []string{"Pending", "Initialized=True"}},
		{name: "SC-04 a main whose image is there does not wait for the other's",
			facts: about("mm", always).boxed().pulled("m0", 0), ops: "PullImage m1/0; StartContainer m0/0"},
		{name: "PL-01 all run: Running and Ready, nothing to do",
			facts: about("im", always).boxed().ended("i0", 0, 0, time.Minute).runs("m1", 0), ops: "",
			status: []string{"Running", "m1=running", "m1.ready=true", "Ready=True", "ContainersReady=True", "Initialized=True"}},
		{name: "SC-08 a sidecar that does not run makes the pod unready",
			facts:  about("sm", always).boxed().ended("s0", 1, 1, 0).runs("m1", 0),
			status: []string{"Running", "Ready=False(ContainersNotReady)", "s0=CrashLoopBackOff"}, wake: 10 * time.Second},

		// Restarts.
		{name: "PL-02 the first restart comes at once", facts: about("m", always).boxed().ended("m0", 0, 1, 0).pulled("m0", 1),
			ops: "StartContainer m0/1", status: []string{"Running", "m0=exit1(Error)", "m0.restarts=0"}},
		{name: "PL-02 the second one 10 s after the exit", facts: about("m", always).boxed().ended("m0", 1, 1, 4*time.Second).pulled("m0", 2),
			ops: "", wake: 6 * time.Second, why: []string{"back-off"},
			status: []string{"Running", "m0=CrashLoopBackOff", "m0:back-off 10s restarting failed container=m0 pod=p_default(u)", "m0.last=exit1(Error)", "m0.restarts=1"}},
		{name: "PL-02 when it is due it starts, and says so until it runs", facts: about("m", always).boxed().ended("m0", 1, 1, 10*time.Second).pulled("m0", 2),
			ops: "StartContainer m0/2", status: []string{"m0=CrashLoopBackOff"}},
		{name: "PL-02 no back-off is longer than 300 s", facts: about("m", always).boxed().ended("m0", 40, 1, 0), ops: "", wake: 300 * time.Second},
		{name: "PL-02 a run of ten minutes is forgiven", facts: about("m", always).boxed().ended("m0", 7, 1, 0).pulled("m0", 8).but(func(f *facts) {
			f.Seen.Containers[0].StartedAt = f.Now.Add(-10 * time.Minute)
		}), ops: "StartContainer m0/8"},
		{name: "PL-02 Always restarts a success too", facts: about("m", always).boxed().ended("m0", 0, 0, 0).pulled("m0", 1), ops: "StartContainer m0/1"},
		{name: "PL-02 OnFailure restarts a failure", facts: about("m", onFailure).boxed().ended("m0", 0, 1, 0).pulled("m0", 1), ops: "StartContainer m0/1"},
		{name: "PL-02 OnFailure does not restart a success; the pod has Succeeded",
			facts: about("m", onFailure).boxed().ended("m0", 0, 0, 0), ops: "StopSandbox 0", why: []string{"is removing its sandbox"},
			status: []string{"Succeeded", "m0=exit0(Completed)", "Ready=False(PodCompleted)", "Initialized=True(PodCompleted)"}},
		{name: "PL-02 OnFailure: one main done, the other runs: nothing happens",
			facts: about("mm", onFailure).boxed().ended("m0", 0, 0, 0).runs("m1", 0), ops: "",
			status: []string{"Running", "m0=exit0(Completed)", "m1=running", "Ready=False(ContainersNotReady)"}},
		{name: "PL-02 Never: one of two mains failed: the pod has Failed when both are over",
			facts:  about("mm", never).boxed().ended("m0", 0, 3, time.Minute).ended("m1", 0, 0, 0),
			ops:    "StopSandbox 0",
			status: []string{"Failed", "m0=exit3(Error)", "m1=exit0(Completed)", "Ready=False(PodFailed)"}},
		{name: "PL-02 Never: a failed init ends the pod", facts: about("im", never).boxed().ended("i0", 0, 2, 0), ops: "StopSandbox 0",
			status: []string{"Failed", "i0=exit2(Error)", "m1=PodInitializing", "Initialized=False(ContainersNotInitialized)"}},
		{name: "PL-02 Always: a failed init is tried again", facts: about("im", always).boxed().ended("i0", 0, 2, 0).pulled("i0", 1), ops: "StartContainer i0/1",
			status: []string{"Pending"}},
		{name: "PL-02 a changed image restarts a running main", facts: about("m", always).boxed().runs("m0", 0).but(func(f *facts) {
			f.Pod.Spec.Containers[0].Image = "img2"
		}), ops: "StopContainer m0/0 in 30s", why: []string{"its image was changed to img2"}},
		{name: "PL-02 and the next attempt waits for no back-off", facts: about("m", always).boxed().ended("m0", 5, 143, 0).but(func(f *facts) {
			f.Pod.Spec.Containers[0].Image = "img2"
		}), ops: "PullImage m0/6"},
		{name: "SC-05 a sidecar is restarted in a pod that never restarts", facts: about("sm", never).boxed().ended("s0", 0, 0, 0).runs("m1", 0).pulled("s0", 1),
			ops: "StartContainer s0/1", status: []string{"Running"}},
		{name: "SC-06 the mains are done: the sidecar is stopped", facts: about("sm", never).boxed().runs("s0", 0).ended("m1", 0, 0, 0),
			ops: "StopContainer s0/0 in 30s", why: []string{"its containers have ended"}, status: []string{"Running"}},
		{name: "SC-06 the sidecar's end says nothing of the pod's", facts: about("sm", never).boxed().ended("s0", 0, 137, 0).ended("m1", 0, 0, time.Second),
			ops: "StopSandbox 0", status: []string{"Succeeded"}},

		// Images.
		{name: "PL-03 a pull that failed just now is shown as it is", facts: about("m", always).boxed().failed(Op{Verb: PullImage, Container: "m0"}, 1, 0, "ErrImagePull", "no such host"),
			ops: "", wake: time.Second, status: []string{"Pending", "m0=ErrImagePull", "m0:no such host"}, why: []string{"try the pull of image img again"}},
		{name: "PL-03 PL-15 then it is backed off", facts: about("m", always).boxed().failed(Op{Verb: PullImage, Container: "m0"}, 1, 2*time.Second, "ErrImagePull", "no such host"),
			ops: "", wake: 8 * time.Second, status: []string{"m0=ImagePullBackOff", `m0:Back-off pulling image "img": ErrImagePull: no such host`}},
		{name: "PL-03 and tried again after 10 s", facts: about("m", always).boxed().failed(Op{Verb: PullImage, Container: "m0"}, 1, 10*time.Second, "ErrImagePull", "no such host"),
			ops: "PullImage m0/0", status: []string{"m0=ImagePullBackOff"}},
		{name: "PL-03 the third time after 40 s", facts: about("m", always).boxed().failed(Op{Verb: PullImage, Container: "m0"}, 3, 10*time.Second, "ErrImagePull", "x"),
			ops: "", wake: 30 * time.Second},
		{name: "PL-03 ErrImageNeverPull is no back-off, and looked at every 10 s", facts: about("m", always).boxed().failed(Op{Verb: PullImage, Container: "m0"}, 5, 4*time.Second, "ErrImageNeverPull", "not here"),
			ops: "", wake: 6 * time.Second, status: []string{"m0=ErrImageNeverPull", "m0:not here"}},
		{name: "PL-03 the failure of one init's image holds all behind it", facts: about("im", always).boxed().failed(Op{Verb: PullImage, Container: "i0"}, 1, 2*time.Second, "ErrImagePull", "x"),
			ops: "", status: []string{"Pending", "i0=ImagePullBackOff", "m1=PodInitializing"}, wake: 8 * time.Second},

		// What cannot be had says why.
		{name: "PL-15 volumes that cannot be had hold the sandbox", facts: about("m", always).failed(Op{Verb: PrepareVolumes}, 1, 100*time.Millisecond, "FailedMount", `configmap "c" not found`),
			ops: "PullImage m0/0", wake: 900 * time.Millisecond, why: []string{"waits for its volumes"},
			status: []string{"Pending", "m0=ContainerCreating", `m0:configmap "c" not found`}},
		{name: "PL-15 a sandbox that cannot be made", facts: about("m", always).pulled("m0", 0).but(func(f *facts) { f.Heard.Prepared = true }).
			failed(Op{Verb: RunSandbox}, 2, 500*time.Millisecond, "FailedCreatePodSandBox", "no address left"),
			ops: "", wake: 1500 * time.Millisecond, status: []string{"m0=ContainerCreating", "m0:no address left"}},
		{name: "PL-15 a sandbox that came all the same: its failure is forgotten", facts: about("m", always).boxed().failed(Op{Verb: RunSandbox}, 1, 0, "FailedCreatePodSandBox", "no answer"),
			ops: "PullImage m0/0", status: []string{"m0=ContainerCreating"}},
		{name: "PL-15 a container that cannot be created", facts: about("m", always).boxed().pulled("m0", 0).failed(Op{Verb: StartContainer, Container: "m0"}, 1, 0, "CreateContainerConfigError", `secret "s" not found`),
			ops: "", wake: time.Second, status: []string{"m0=CreateContainerConfigError", `m0:secret "s" not found`}},
		{name: "PL-15 PL-01 a container that could not be started", facts: about("m", always).boxed().ended("m0", 0, 128, 0).pulled("m0", 1).
			failed(Op{Verb: StartContainer, Container: "m0"}, 1, 0, "RunContainerError", "exec: no such file").but(func(f *facts) { f.Seen.Containers[0].StartedAt = time.Time{} }),
			ops: "StartContainer m0/1", status: []string{"m0=RunContainerError", "m0:exec: no such file", "m0.last=exit128(Error)"}},
		{name: "PL-15 a node that refuses the pod", facts: about("m", always).but(func(f *facts) { f.Refused = &Refusal{Reason: "NotSupported", Message: "no"} }),
			ops: "", status: []string{"Failed", "reason=NotSupported"}, flags: "ended"},
		{name: "PL-15 but never one that it has begun", facts: about("m", always).boxed().runs("m0", 0).but(func(f *facts) { f.Refused = &Refusal{Reason: "NotSupported", Message: "no"} }),
			ops: "", status: []string{"Running"}},
		{name: "SC-18 unless the refusal is of one that runs too: it is stopped", facts: about("sm", always).boxed().runs("s0", 0).runs("m1", 0).but(func(f *facts) {
			f.Refused = &Refusal{Reason: "FeatureGateOff", Message: "no", Begun: true}
		}), ops: "StopContainer m1/0 in 30s", status: []string{"Running"}, why: []string{"no longer accepts it"}},
		{name: "SC-18 and it ends as Failed", facts: about("sm", always).boxed().ended("s0", 0, 0, 0).ended("m1", 0, 143, 0).but(func(f *facts) {
			f.Refused = &Refusal{Reason: "FeatureGateOff", Message: "no", Begun: true}
		}), ops: "StopSandbox 0", status: []string{"Failed", "reason=FeatureGateOff"}},

		// Trouble.
		{name: "the sandbox died: what runs in it is stopped first", facts: about("im", always).boxed().ended("i0", 0, 0, time.Minute).runs("m1", 0).but(func(f *facts) { f.Seen.Sandboxes[0].Ready = false }),
			ops: "StopContainer m1/0 in 30s", why: []string{"sandbox has died"}, status: []string{"Running", "PodReadyToStartContainers=False(PodSandboxNotReady)"}},
		{name: "the sandbox died: then it is stopped", facts: about("im", always).boxed().ended("i0", 0, 0, time.Minute).ended("m1", 0, 143, 0).but(func(f *facts) { f.Seen.Sandboxes[0].Ready = false }),
			ops: "StopSandbox 0", status: []string{"Pending"}},
		{name: "SC-19 the sandbox died: then a new one is made, and inits run again", facts: about("im", always).boxed().ended("i0", 0, 0, time.Minute).ended("m1", 0, 143, 0).but(func(f *facts) {
			f.Seen.Sandboxes[0].Ready = false
			f.Heard.Stopped[0] = true
		}), ops: "PullImage i0/1; RunSandbox 1"},
		{name: "SC-19 in a restarted agent a completed init is not run again", facts: about("im", always).boxed().ended("i0", 0, 0, time.Minute).but(func(f *facts) { f.Heard.Prepared = false }),
			ops: "PrepareVolumes; PullImage m1/0"},
		{name: "SC-19 nor one whose container is gone, when a main behind it was begun", facts: about("im", always).boxed().runs("m1", 0), ops: "", status: []string{"Running"}},
		{name: "SC-19 after a reboot a Never pod whose main ran has Failed", facts: about("m", never).but(func(f *facts) {
			f.Pod.Status.Phase = corev1.PodRunning
			f.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "m0", ContainerID: "sim://x",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch)}}}}
		}), ops: "", status: []string{"Failed", "m0=exit137(ContainerStatusUnknown)"}, flags: "ended"},
		{name: "a container the runtime lost sight of is stopped before another is started", facts: about("m", always).boxed().runs("m0", 0).but(func(f *facts) { f.Seen.Containers[0].Lost = true }),
			ops: "StopContainer m0/0 in 0s", why: []string{"lost track"}},
		{name: "PL-02 only the newest that has exited is kept", facts: about("m", always).boxed().ended("m0", 0, 1, time.Minute).ended("m0", 1, 1, 30*time.Second).runs("m0", 2),
			ops: "RemoveContainer m0/0"},

		// The end.
		{name: "PL-10 a deleted pod is stopped, with what is left of its grace", facts: about("mm", always).boxed().runs("m0", 0).runs("m1", 0).deleted(10 * time.Second),
			ops: "StopContainer m0/0 in 20s; StopContainer m1/0 in 20s", why: []string{"it is being deleted"}, wake: 20 * time.Second, status: []string{"Running"}},
		{name: "PL-10 what is being started is waited for, and not begun anew", facts: about("m", always).boxed().pulled("m0", 0).calling(Op{Verb: StartContainer, Container: "m0"}).deleted(0),
			ops: "", wake: 30 * time.Second},
		{name: "PL-10 a pull is called off, and the sandbox goes", facts: about("m", always).boxed().calling(Op{Verb: PullImage, Container: "m0"}).deleted(0),
			ops: "StopSandbox 0", status: []string{"Failed"}},
		{name: "PL-10 the sandbox stays while it is being made", facts: about("m", always).calling(Op{Verb: RunSandbox}).deleted(0), ops: "", wake: 30 * time.Second},
		{name: "PL-10 nothing is removed before the last status is stored", facts: about("m", always).boxed().ended("m0", 0, 143, 0).deleted(0).but(func(f *facts) {
			f.Seen.Sandboxes[0].Ready, f.Heard.Stopped[0] = false, true
		}), ops: "ReleaseVolumes", why: []string{"last status is stored"}, status: []string{"Failed"}},
		{name: "PL-10 then the sandbox is removed", facts: about("m", always).boxed().ended("m0", 0, 143, 0).deleted(0).but(func(f *facts) {
			f.Seen.Sandboxes[0].Ready, f.Heard.Stopped[0], f.Seen.Volumes = false, true, false
		}).told(), ops: "RemoveSandbox 0"},
		{name: "PL-10 then the logs", facts: about("m", always).deleted(0).but(func(f *facts) { f.Seen.Logs = true }).told(), ops: "RemoveLogs"},
		{name: "PL-10 then nothing is left", facts: about("m", always).deleted(0).told(), ops: "", flags: "ended gone"},
		{name: "PL-10 but not while a call is out", facts: about("m", always).deleted(0).told().calling(Op{Verb: RemoveLogs}), ops: "RemoveLogs"},
		{name: "PL-10 a pod without a record gets two seconds", facts: about("m", always).boxed().runs("m0", 0).but(func(f *facts) {
			f.Removed, f.Heard.LeftAt = true, f.Now
		}), ops: "StopContainer m0/0 in 2s", wake: 2 * time.Second},
		{name: "PL-10 and what no spec names is stopped too", facts: about("m", always).boxed().runs("stranger", 0).but(func(f *facts) {
			f.Removed, f.Heard.LeftAt = true, f.Now
			f.Pod.Spec = corev1.PodSpec{}
		}), ops: "StopContainer stranger/0 in 2s", wake: 2 * time.Second},
		{name: "SC-09 mains go first", facts: about("ssm", always).boxed().runs("s0", 0).runs("s1", 0).runs("m2", 0).deleted(0),
			ops: "StopContainer m2/0 in 30s", wake: 30 * time.Second},
		{name: "SC-09 then the last sidecar", facts: about("ssm", always).boxed().runs("s0", 0).runs("s1", 0).ended("m2", 0, 143, 0).deleted(5 * time.Second),
			ops: "StopContainer s1/0 in 25s", wake: 25 * time.Second},
		{name: "SC-09 then the one before", facts: about("ssm", always).boxed().runs("s0", 0).ended("s1", 0, 143, 0).ended("m2", 0, 143, 0).deleted(5 * time.Second),
			ops: "StopContainer s0/0 in 25s", wake: 25 * time.Second},
		{name: "SC-09 past the deadline all at once, and those that hear of it only now have two seconds",
			facts: about("sm", always).boxed().runs("s0", 0).runs("m1", 0).deleted(30 * time.Second).calling(Op{Verb: StopContainer, Container: "m1", Until: epoch.Add(time.Hour)}),
			ops:   "StopContainer m1/0 in 0s; StopContainer s0/0 in 2s"},
		{name: "PL-11 activeDeadlineSeconds wakes in time", facts: about("m", always).boxed().runs("m0", 0).but(func(f *facts) { f.deadline(3700) }), ops: "", wake: 100 * time.Second},
		{name: "PL-11 and stops the pod", facts: about("m", always).boxed().runs("m0", 0).but(func(f *facts) { f.deadline(3600) }),
			ops: "StopContainer m0/0 in 30s", why: []string{"activeDeadlineSeconds"}, wake: 30 * time.Second, status: []string{"Running", "reason=DeadlineExceeded"}},
		{name: "PL-11 which has Failed then", facts: about("m", always).boxed().ended("m0", 0, 0, 0).but(func(f *facts) { f.deadline(3600) }),
			ops: "StopSandbox 0", status: []string{"Failed", "reason=DeadlineExceeded"}},
		{name: "PL-11 also when nothing ever ran", facts: about("im", always).boxed().but(func(f *facts) { f.deadline(60) }), ops: "StopSandbox 0", status: []string{"Failed", "reason=DeadlineExceeded"}},
		{name: "PL-01 a pod that has ended stays so", facts: about("m", always).but(func(f *facts) { f.Pod.Status.Phase = corev1.PodSucceeded }), ops: "",
			status: []string{"Succeeded"}, flags: "ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Next(c.facts.Input)
			if got := opsOf(d, c.facts.Now); got != c.ops {
				t.Errorf("wants %q, not %q", got, c.ops)
			}
			for _, w := range c.why {
				if !slices.ContainsFunc(d.Why, func(r Reason) bool { return strings.Contains(r.Text, w) }) {
					t.Errorf("does not say why: %q is not in %+v", w, d.Why)
				}
			}
			all := shown(&d.Status)
			for _, w := range c.status {
				if !slices.Contains(all, w) {
					t.Errorf("status lacks %s: %q", w, all)
				}
			}
			if got := d.Wake.Sub(c.facts.Now); c.wake != 0 && got != c.wake {
				t.Errorf("wakes after %v, want %v", got, c.wake)
			}
			if c.wake == 0 && !d.Wake.IsZero() && len(d.Ops) == 0 {
				t.Errorf("wakes after %v for nothing the table knows of", d.Wake.Sub(c.facts.Now))
			}
			flags := ""
			if d.Ended {
				flags += "ended "
			}
			if d.Gone {
				flags += "gone"
			}
			if strings.TrimSpace(flags) != c.flags {
				t.Errorf("is %q, want %q", flags, c.flags)
			}
		})
	}
}

func (f *facts) deadline(seconds int64) { f.Pod.Spec.ActiveDeadlineSeconds = &seconds }

// TestDelay holds the back-off's sequence (PL-02).
func TestDelay(t *testing.T) {
	want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300}
	for streak, w := range want {
		if got := Delay(streak); got != w*time.Second {
			t.Errorf("after %d restarts in a row the next waits %v, want %v", streak, got, w*time.Second)
		}
	}
}

// TestNextKeepsItsInput: a decision is a pure function; the same facts give the same decision, and none of them is changed.
func TestNextKeepsItsInput(t *testing.T) {
	f := about("ismm", onFailure).boxed().ended("i0", 1, 0, time.Minute).runs("s1", 0).ended("m2", 3, 1, time.Second).runs("m3", 0)
	pod, seen := f.Pod.DeepCopy(), slices.Clone(f.Seen.Containers)
	if a, b := Next(f.Input), Next(f.Input); !reflect.DeepEqual(a, b) {
		t.Errorf("two decisions on the same facts:\n%+v\n%+v", a, b)
	}
	if !reflect.DeepEqual(pod, f.Pod) || !reflect.DeepEqual(seen, f.Seen.Containers) {
		t.Error("the facts were changed")
	}
}

// BenchmarkNext plans a pod of ten containers that all run, which is what most pods are asked for most of the time.
func BenchmarkNext(b *testing.B) {
	f := about("iisssmmmmm", always).boxed().ended("i0", 0, 0, time.Minute).ended("i1", 0, 0, time.Minute)
	for _, n := range []string{"s2", "s3", "s4", "m5", "m6", "m7", "m8", "m9"} {
		f.runs(n, 0)
	}
	f.told()
	b.ReportAllocs()
	for b.Loop() {
		if d := Next(f.Input); len(d.Ops) != 0 {
			b.Fatal(d.Ops)
		}
	}
}

// TestNextAllocates holds that a pod that was restarted a thousand times costs no more to plan than one that was restarted once.
func TestNextAllocates(t *testing.T) {
	allocations := func(restarts uint32) float64 {
		f := about("ism", always).boxed().ended("i0", 0, 0, time.Minute)
		for _, n := range []string{"s1", "m2"} {
			f.ended(n, restarts-1, 1, time.Minute).runs(n, restarts)
		}
		f.told()
		return testing.AllocsPerRun(100, func() { Next(f.Input) })
	}
	if once, often := allocations(1), allocations(1000); often > once {
		t.Errorf("planning allocates %v times after 1000 restarts and %v times after one", often, once)
	}
}

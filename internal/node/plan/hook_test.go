// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPostStartHoldsUp holds which mains wait for the postStart hooks of others (PL-17).
func TestPostStartHoldsUp(t *testing.T) {
	post := func(attempt uint32) Op { return Op{Verb: PostStart, Container: "H0", Attempt: attempt} }
	done := func(f *facts) { f.Heard.Done[post(0).Key()] = true }
	both := func() *facts { return about("Hm", always).boxed().pulled("H0", 0).pulled("m1", 0) }
	for _, c := range []decided{
		{name: "the first with a hook starts, the one behind waits", facts: both(),
			ops: "StartContainer H0/0", why: "waits for the postStart hook of container H0", status: []string{"m1=ContainerCreating"}},
		{name: "its image is pulled meanwhile", facts: about("Hm", always).boxed(), ops: "PullImage H0/0; PullImage m1/0"},
		{name: "while it starts", facts: both().calling(Op{Verb: StartContainer, Container: "H0"}), ops: "StartContainer H0/0", why: "waits for the postStart hook of container H0"},
		{name: "while its hook runs", facts: both().runs("H0", 0), ops: "PostStart H0/0", why: "waits for the postStart hook of container H0"},
		{name: "until that is done", facts: both().runs("H0", 0).but(done), ops: "StartContainer m1/0"},
		{name: "or has failed", facts: both().runs("H0", 0).failed(post(0), 1, 0, "", "no"), ops: "PreStop H0/0 in 30s; StartContainer m1/0"},
		{name: "a startup probe holds up nothing", facts: both().runs("H0", 0).but(done).but(func(f *facts) { f.Pod.Spec.Containers[0].StartupProbe = &corev1.Probe{} }), ops: "Probe H0/0; StartContainer m1/0"},
		{name: "one that backs off does not hold up", facts: both().ended("H0", 1, 1, time.Second).pulled("H0", 2), ops: "StartContainer m1/0", why: "back-off"},
		{name: "one that is due does again", facts: both().ended("H0", 1, 1, 10*time.Second).pulled("H0", 2), ops: "StartContainer H0/2"},
		{name: "one whose image cannot be had does not", facts: about("Hm", always).boxed().pulled("m1", 0).failed(Op{Verb: PullImage, Container: "H0"}, 1, time.Second, reasonErrPull, "no"), ops: "StartContainer m1/0"},
		{name: "nor one that cannot be started", facts: both().failed(Op{Verb: StartContainer, Container: "H0"}, 2, time.Second, reasonCreateError, "no"), ops: "StartContainer m1/0"},
		{name: "nor one that is held", facts: both().ended("H0", 0, 1, time.Second).but(holding("1m")), ops: "StartContainer m1/0"},
		{name: "nor one that has ended for good", facts: about("Hm", never).boxed().ended("H0", 0, 0, time.Second).pulled("m1", 0), ops: "StartContainer m1/0"},
		{name: "nor one that is being stopped", facts: both().runs("H0", 0).calling(Op{Verb: StopContainer, Container: "H0", Until: epoch.Add(time.Hour)}), ops: "StartContainer m1/0; StopContainer H0/0 in 0s"},
		{name: "nor one whose new image has it stopped", facts: both().runs("H0", 0).but(imaged), ops: "PreStop H0/0 in 30s; StartContainer m1/0"},
		{name: "a restarted agent runs the hook again, and waits again", facts: both().runs("H0", 0), ops: "PostStart H0/0"},
		{name: "unless it is stored that the main had started", facts: both().runs("H0", 0).but(done).told().but(func(f *facts) { f.Heard.Done = nil }), ops: "StartContainer m1/0"},
		{name: "those that run already are looked after as ever", facts: about("Hm", always).boxed().pulled("H0", 1).ended("H0", 0, 1, 0).runs("m1", 0), ops: "StartContainer H0/1", status: []string{"m1=running"}},
		{name: "mains without hooks do not wait for one another", facts: about("mmH", always).boxed().pulled("m1", 0).pulled("H2", 0), ops: "PullImage m0/0; StartContainer H2/0; StartContainer m1/0"},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

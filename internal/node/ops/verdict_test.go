// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/node/plan"
)

// TestVerdictIsKept: a stop for a fault is kept with the container, before the runtime is asked, for whoever looks next; the first
// verdict stays; it goes with the container (PL-16).
func TestVerdictIsKept(t *testing.T) {
	b := newBench(t, nil)
	b.must(plan.Op{Verb: plan.PrepareVolumes})
	b.must(plan.Op{Verb: plan.RunSandbox})
	b.must(plan.Op{Verb: plan.PullImage, Container: "main"})
	b.must(plan.Op{Verb: plan.StartContainer, Container: "main"})
	if c := b.see().Containers[0]; c.Condemned.Given() {
		t.Fatalf("nobody gave a verdict: %+v", c.Condemned)
	}
	want := plan.Verdict{Fault: "failed liveness probe", Until: time.Now().Add(time.Minute).Round(0)}
	stop := plan.Op{Verb: plan.StopContainer, Container: "main", Until: time.Now(), Verdict: want}
	seen := b.see()
	b.fake.Down()
	if err := b.Do(context.Background(), b.taskOn(stop, seen)); err == nil {
		t.Fatal("the runtime is down, and the container was stopped")
	}
	b.fake.Up()
	if c := b.see().Containers[0]; c.Condemned.Fault != want.Fault || !c.Condemned.Until.Equal(want.Until) || !c.Running() {
		t.Errorf("before anything is done to it, it is %+v", c)
	}
	stop.Verdict = plan.Verdict{Fault: "another", Until: want.Until.Add(time.Hour)}
	b.must(stop)
	if c := b.see().Containers[0]; c.Condemned.Fault != want.Fault || !c.Condemned.Until.Equal(want.Until) || !c.Exited() {
		t.Errorf("the first verdict does not stay: %+v", c)
	}
	b.must(plan.Op{Verb: plan.RemoveContainer, Container: "main"})
	if _, err := os.Lstat(b.verdictFile(b.pod, "main", 0)); !os.IsNotExist(err) {
		t.Errorf("the verdict is left behind: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
)

// DC-08: what kubectl get debugruns prints of each kind and state of a record.
func TestDebugRuns(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	record := func(name string, spec debugrun.DebugRunSpec, status debugrun.DebugRunStatus) runtime.Object {
		spec.Pod.Name, spec.Image, spec.User = "web", "tools:1", "jane"
		r := &debugrun.DebugRun{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec, Status: status}
		r.SetGroupVersionKind(debugrun.GroupVersion().WithKind("DebugRun"))
		return r
	}
	shell := debugrun.DebugRunSpec{Kind: debugrun.EphemeralContainer, Container: "debug", Target: "main", Command: []string{"sh"}, Args: []string{"-i"}, Run: 2}
	image := debugrun.DebugRunSpec{Kind: debugrun.ImageExec}
	got := render(t, []runtime.Object{
		record("pending", shell, debugrun.DebugRunStatus{}),
		record("failing", shell, debugrun.DebugRunStatus{Reason: "ErrImagePull"}),
		record("running", shell, debugrun.DebugRunStatus{StartedAt: ago(time.Minute)}),
		record("ended", image, debugrun.DebugRunStatus{StartedAt: ago(time.Hour), FinishedAt: ago(50 * time.Minute), ExitCode: new(int32(3))}),
		record("unknown", image, debugrun.DebugRunStatus{StartedAt: ago(time.Hour), FinishedAt: ago(time.Hour), Reason: debugrun.Unwatched}),
	}, true)
	want := []string{
		"NAME POD KIND CONTAINER IMAGE TARGET USER STARTED EXIT COMMAND RUN LASTED",
		"pending web EphemeralContainer debug tools:1 main jane <none> Pending sh -i 2 <none>",
		"failing web EphemeralContainer debug tools:1 main jane <none> ErrImagePull sh -i 2 <none>",
		"running web EphemeralContainer debug tools:1 main jane 60s Running sh -i 2 60s",
		"ended web ImageExec <none> tools:1 <none> jane 60m 3 <none> 0 10m",
		"unknown web ImageExec <none> tools:1 <none> jane 60m Unwatched <none> 0 0s",
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), got)
	}
	for i := range want {
		if line := strings.Join(strings.Fields(lines[i]), " "); line != want[i] {
			t.Errorf("%q, want %q", line, want[i])
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/plan"
)

// FuzzFacts: whatever a runtime says of a container, a sandbox and their annotations, what is made of it holds together: times are in order,
// and no annotation makes a restart come sooner than the back-off lets it, or never.
func FuzzFacts(f *testing.F) {
	add := func(streak string, container *runtimeapi.ContainerStatus, sandbox *runtimeapi.PodSandboxStatus) {
		c, err := proto.Marshal(container)
		if err != nil {
			f.Fatal(err)
		}
		s, err := proto.Marshal(sandbox)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(streak, c, s)
	}
	meta, at := &runtimeapi.ContainerMetadata{Name: "c", Attempt: 3}, time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC).UnixNano()
	ready := &runtimeapi.PodSandboxStatus{Id: "s", Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Uid: "u", Attempt: 1}, CreatedAt: at,
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::1"}}}}
	add("2", &runtimeapi.ContainerStatus{Id: "a", Metadata: meta, State: runtimeapi.ContainerState_CONTAINER_EXITED, CreatedAt: at, StartedAt: at + 1, FinishedAt: at + 2, ExitCode: 137,
		Reason: "OOMKilled", Image: &runtimeapi.ImageSpec{Image: "i"}, ImageRef: "sha256:0", Annotations: map[string]string{annotationStreak: "2", annotationImage: "i:1"}}, ready)
	add("99999999999999999999", &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_EXITED, CreatedAt: -1}, &runtimeapi.PodSandboxStatus{})
	add("-5", &runtimeapi.ContainerStatus{Id: "a", Metadata: meta, State: runtimeapi.ContainerState_CONTAINER_UNKNOWN, StartedAt: 1 << 62}, ready)
	add("9223372036854775807", &runtimeapi.ContainerStatus{State: 77, User: &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{Uid: -1}}}, ready)
	f.Fuzz(func(t *testing.T, streak string, container, sandbox []byte) {
		var s runtimeapi.PodSandboxStatus
		if proto.Unmarshal(sandbox, &s) == nil {
			if got := sandboxFacts(&s); got.CreatedAt.UnixNano() < 0 && !got.CreatedAt.IsZero() {
				t.Errorf("a sandbox was made at %v", got.CreatedAt)
			}
		}
		var c runtimeapi.ContainerStatus
		if proto.Unmarshal(container, &c) != nil {
			return
		}
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[annotationStreak] = streak
		got := containerFacts(cri.ObservedContainer{SandboxID: "s", Status: &c})
		if got.Exited() && got.FinishedAt.IsZero() && c.CreatedAt > 0 {
			t.Errorf("it has ended and never did: %+v", got)
		}
		if got.Streak < 0 || got.Streak > 0 && plan.Delay(got.Streak+1) < plan.Delay(got.Streak) {
			t.Errorf("a streak of %q is taken for %d", streak, got.Streak)
		}
	})
}

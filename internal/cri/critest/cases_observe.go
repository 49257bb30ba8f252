// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

func observeCases() []Case {
	return []Case{
		{"Observe shows the pod and nothing else", testObserve},
		{"events tell creation, start, end and removal", testEvents},
		{"a nudge follows an end", testNudge},
	}
}

func testObserve(t *testing.T, e Env) {
	p, other := newPod(t, e), newPod(t, e)
	other.up("main", nil)
	first := p.up("main", []string{"run_for=0s", "exit_code=1"})
	p.ended(first)
	second := p.up("main", nil, attempt(1))
	for range 2 { // the second time from the cache
		seen, err := p.client.Observe(p.ctx(), p.uid)
		if err != nil || len(seen.Sandboxes) != 1 || len(seen.Containers) != 2 {
			t.Fatalf("Observe: %+v, %v", seen, err)
		}
		newest, oldest := seen.Containers[0], seen.Containers[1]
		if newest.Status.GetId() != second || oldest.Status.GetId() != first || oldest.SandboxID != p.sandbox {
			t.Errorf("Observe: containers %v, %v; want the newest first", newest, oldest)
		}
		if oldest.Status.GetExitCode() != 1 || newest.Status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			t.Errorf("Observe: %v, %v", newest.Status, oldest.Status)
		}
		time.Sleep(2500 * time.Millisecond) // a status is cached when it is 2 s old
	}
	p.remove(first)
	if seen, err := p.client.Observe(p.ctx(), p.uid); err != nil || len(seen.Containers) != 1 {
		t.Errorf("Observe after a removal: %+v, %v", seen, err)
	}
	refs, err := p.client.Pods(p.ctx())
	if err != nil {
		t.Fatal(err)
	}
	want := cri.PodRef{UID: p.uid, Namespace: "test", Name: p.config.GetMetadata().GetName(), Running: true}
	if !slices.Contains(refs, want) {
		t.Errorf("Pods: %v lacks %v", refs, want)
	}
}

func testEvents(t *testing.T, e Env) {
	if e.NoEvents {
		t.Skip("this runtime has no container events")
	}
	p := newPod(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := p.client.Runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *runtimeapi.ContainerEventResponse, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			ev, err := stream.Recv()
			if err != nil {
				return
			}
			got <- ev
		}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	// The runtime does not say when it has subscribed us: it has when it tells of what is made meanwhile.
	for n, late := 0, time.After(patience); !toldOf(p.create(fmt.Sprintf("probe-%d", n), nil), got); n++ {
		select {
		case <-late:
			t.Fatal("the runtime tells of no container")
		default:
		}
	}
	id := p.up("main", []string{"run_for=100ms"})
	p.ended(id)
	p.remove(id)
	want := []runtimeapi.ContainerEventType{
		runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT,
	}
	late := time.After(patience)
	for len(want) > 0 {
		select {
		case ev := <-got:
			if ev.GetContainerId() != id {
				continue
			}
			if ev.GetContainerEventType() != want[0] || ev.GetPodSandboxStatus().GetMetadata().GetUid() != p.uid {
				t.Fatalf("event %v of pod %q, want %v", ev.GetContainerEventType(),
					ev.GetPodSandboxStatus().GetMetadata().GetUid(), want[0])
			}
			want = want[1:]
		case <-late:
			t.Fatalf("no event %v", want[0])
		}
	}
}

// toldOf reports whether an event about a container comes soon.
func toldOf(id string, got <-chan *runtimeapi.ContainerEventResponse) bool {
	soon := time.After(time.Second)
	for {
		select {
		case ev := <-got:
			if ev.GetContainerId() == id {
				return true
			}
		case <-soon:
			return false
		}
	}
}

func testNudge(t *testing.T, e Env) {
	p := newPod(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	nudges := p.client.Nudges(ctx)
	defer func() {
		cancel()
		for range nudges {
		}
	}()
	if uid := <-nudges; uid != "" {
		t.Errorf("the first nudge is for %q, not for everything", uid)
	}
	id := p.up("main", []string{"run_for=1500ms"})
	late := time.After(patience)
	for {
		select {
		case uid := <-nudges:
			if uid != "" && uid != p.uid {
				continue
			}
			if p.status(id).GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
				return
			}
		case <-late:
			t.Fatal("no nudge after the container's end")
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// shims is a runtime that asks each pod's shim, as containerd does: one that is stuck answers when the caller has gone.
type shims struct {
	runtimeapi.RuntimeServiceClient
	mu    sync.Mutex
	pods  map[string]uint64 // memory by sandbox
	stuck map[string]bool
	asked map[string]int // one by one
	err   error
}

func (s *shims) one(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	s.mu.Lock()
	stuck, memory, err := s.stuck[id], s.pods[id], s.err
	s.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &runtimeapi.PodSandboxStats{Attributes: &runtimeapi.PodSandboxAttributes{Id: id, Labels: labels(id)},
		Linux: &runtimeapi.LinuxPodSandboxStats{Memory: &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: memory}}}}, err
}

func labels(id string) map[string]string { return map[string]string{cri.LabelPodUID: id} }

func (s *shims) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pods))
}

func (s *shims) set(id string, memory uint64, stuck bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[id], s.stuck[id] = memory, stuck
}

func (s *shims) ListPodSandboxStats(ctx context.Context, _ *runtimeapi.ListPodSandboxStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	out := &runtimeapi.ListPodSandboxStatsResponse{}
	for _, id := range s.ids() {
		one, err := s.one(ctx, id)
		if err != nil {
			return nil, err
		}
		out.Stats = append(out.Stats, one)
	}
	return out, nil
}

func (s *shims) PodSandboxStats(ctx context.Context, r *runtimeapi.PodSandboxStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.PodSandboxStatsResponse, error) {
	s.mu.Lock()
	s.asked[r.GetPodSandboxId()]++
	s.mu.Unlock()
	one, err := s.one(ctx, r.GetPodSandboxId())
	return &runtimeapi.PodSandboxStatsResponse{Stats: one}, err
}

func (s *shims) ListContainerStats(ctx context.Context, r *runtimeapi.ListContainerStatsRequest,
	_ ...grpc.CallOption) (*runtimeapi.ListContainerStatsResponse, error) {
	out := &runtimeapi.ListContainerStatsResponse{}
	for _, id := range s.ids() {
		if only := r.GetFilter().GetPodSandboxId(); only != "" && only != id {
			continue
		}
		one, err := s.one(ctx, id)
		if err != nil {
			return nil, err
		}
		out.Stats = append(out.Stats,
			&runtimeapi.ContainerStats{Attributes: &runtimeapi.ContainerAttributes{Labels: labels(id)},
				Memory: one.GetLinux().GetMemory()})
	}
	return out, nil
}

func (s *shims) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest,
	...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	out := &runtimeapi.ListPodSandboxResponse{}
	for _, id := range s.ids() {
		out.Items = append(out.Items, &runtimeapi.PodSandbox{Id: id, Labels: labels(id)})
	}
	return out, nil
}

// memory are the figures by pod, of pods and of containers, which must be the same.
func memory(t *testing.T, r *Reader) map[string]uint64 {
	t.Helper()
	pods, err := r.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, p := range pods {
		out[p.GetAttributes().GetLabels()[cri.LabelPodUID]] = p.GetLinux().GetMemory().GetWorkingSetBytes().GetValue()
	}
	containers, err := r.Containers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		if id, n := c.GetAttributes().GetLabels()[cri.LabelPodUID],
			c.GetMemory().GetWorkingSetBytes().GetValue(); out[id] != n {
			t.Errorf("pod %s has %d, its container %d", id, out[id], n)
		}
	}
	return out
}

// TestStuck proves RS-05: a pod whose shim hangs keeps its last figures, the others have new ones; it is asked once,
// and has new ones again when it comes back. Old code: nobody had any.
func TestStuck(t *testing.T) {
	s := &shims{pods: map[string]uint64{"a": 1, "b": 2}, stuck: map[string]bool{}, asked: map[string]int{}}
	r := New(s)
	r.patience = 20 * time.Second
	defer r.Close()
	expect := func(what string, want map[string]uint64) {
		t.Helper()
		if got := memory(t, r); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("all answer", map[string]uint64{"a": 1, "b": 2})
	if len(s.asked) > 0 {
		t.Errorf("asked one by one: %v", s.asked)
	}
	s.set("a", 10, true)
	s.set("b", 20, false)
	r.patience = 2 * time.Second // b must be in time on a busy machine
	expect("one is stuck", map[string]uint64{"a": 1, "b": 20})
	s.set("c", 30, true)
	expect("another is from its beginning", map[string]uint64{"a": 1, "b": 20, "c": 0})
	expect("again", map[string]uint64{"a": 1, "b": 20, "c": 0})
	if s.asked["a"] != 1 || s.asked["c"] != 1 {
		t.Errorf("asked while a call was under way: %v", s.asked)
	}
}

// RS-05: what is no hanging is told, and who has gone is not waited for.
func TestErrors(t *testing.T) {
	down := errors.New("down")
	s := &shims{pods: map[string]uint64{"a": 1}, stuck: map[string]bool{}, asked: map[string]int{}, err: down}
	r := New(s)
	defer r.Close()
	if _, err := r.Pods(t.Context()); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	if _, err := r.Containers(t.Context()); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	s.set("a", 1, true)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Pods(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

const (
	// patience is how long pods are waited for. A shim that works answers in milliseconds, on a busy machine in some
	// hundred.
	patience = 2 * time.Second
	// longest is how long a call may be under way that nobody waits for any more. Then it is made again, to see whether
	// the shim has come back.
	longest = 30 * time.Second
)

// Reader asks a runtime. It is safe for concurrent use.
type Reader struct {
	runtime    runtimeapi.RuntimeServiceClient
	patience   time.Duration
	pods       flights[*runtimeapi.PodSandboxStats]
	containers flights[[]*runtimeapi.ContainerStats]

	life  context.Context // of calls: they outlive who has asked
	end   context.CancelFunc
	going sync.WaitGroup

	mu   sync.Mutex
	last map[string][]*runtimeapi.ContainerStats // of the last call about all containers, by pod UID
}

// New makes a Reader, which Close ends.
func New(runtime runtimeapi.RuntimeServiceClient) *Reader {
	r := &Reader{runtime: runtime, patience: patience}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Close ends the calls that are under way. Nobody may ask any more.
func (r *Reader) Close() {
	r.end()
	r.going.Wait()
}

// Pods are the figures of all pods that have a sandbox. A pod that has never answered has its attributes only.
func (r *Reader) Pods(ctx context.Context) ([]*runtimeapi.PodSandboxStats, error) {
	if !r.pods.late() {
		brief, cancel := context.WithTimeout(ctx, r.patience)
		list, err := r.runtime.ListPodSandboxStats(brief, &runtimeapi.ListPodSandboxStatsRequest{})
		cancel()
		if err == nil {
			known := make(map[string]*runtimeapi.PodSandboxStats, len(list.GetStats()))
			for _, s := range list.GetStats() {
				known[s.GetAttributes().GetId()] = s
			}
			r.pods.learn(known)
			return list.GetStats(), nil
		}
		if !tooLate(ctx, err) {
			return nil, err
		}
	}
	sandboxes, err := r.sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	got := r.pods.each(ctx, r, sandboxes, func(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
		s, err := r.runtime.PodSandboxStats(ctx, &runtimeapi.PodSandboxStatsRequest{PodSandboxId: id})
		return s.GetStats(), err
	})
	out := make([]*runtimeapi.PodSandboxStats, 0, len(sandboxes))
	for _, b := range sandboxes {
		s := got[b.GetId()]
		if s == nil {
			s = &runtimeapi.PodSandboxStats{Attributes: &runtimeapi.PodSandboxAttributes{
				Id: b.GetId(), Metadata: b.GetMetadata(), Labels: b.GetLabels(), Annotations: b.GetAnnotations()}}
		}
		out = append(out, s)
	}
	return out, nil
}

// Containers are the figures of all containers, those that have ended too where the runtime has them.
func (r *Reader) Containers(ctx context.Context) ([]*runtimeapi.ContainerStats, error) {
	if !r.containers.late() {
		brief, cancel := context.WithTimeout(ctx, r.patience)
		list, err := r.runtime.ListContainerStats(brief, &runtimeapi.ListContainerStatsRequest{})
		cancel()
		if err == nil {
			r.learn(list.GetStats())
			return list.GetStats(), nil
		}
		if !tooLate(ctx, err) {
			return nil, err
		}
	}
	sandboxes, err := r.sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	got := r.containers.each(ctx, r, sandboxes, func(ctx context.Context,
		id string) ([]*runtimeapi.ContainerStats, error) {
		list,
			err := r.runtime.ListContainerStats(ctx,
			&runtimeapi.ListContainerStatsRequest{Filter: &runtimeapi.ContainerStatsFilter{PodSandboxId: id}})
		return list.GetStats(), err
	})
	var out []*runtimeapi.ContainerStats
	for _, b := range sandboxes {
		stats, answered := got[b.GetId()]
		if !answered {
			stats = r.learned(b)
		}
		out = append(out, stats...)
	}
	return out, nil
}

func (r *Reader) learn(list []*runtimeapi.ContainerStats) {
	last := map[string][]*runtimeapi.ContainerStats{}
	for _, s := range list {
		uid := s.GetAttributes().GetLabels()[cri.LabelPodUID]
		last[uid] = append(last[uid], s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = last
}

// learned are the last figures of a pod's containers from when all were asked about. Those of a sandbox that is there
// no more are given by none.
func (r *Reader) learned(b *runtimeapi.PodSandbox) []*runtimeapi.ContainerStats {
	uid := b.GetLabels()[cri.LabelPodUID]
	if uid == "" || b.GetState() != runtimeapi.PodSandboxState_SANDBOX_READY {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[uid]
}

// sandboxes lists the sandboxes, which the runtime knows without asking a shim.
func (r *Reader) sandboxes(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	list, err := r.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	return list.GetItems(), err
}

// tooLate reports whether err is that of a call that took too long, not that of a caller who has gone.
func tooLate(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded))
}

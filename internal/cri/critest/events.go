// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// held is how many events are kept while nobody listens (containerd keeps five minutes' worth).
const held = 1000

type events struct {
	waiting     []*runtimeapi.ContainerEventResponse
	subscribers []*subscriber
}

type subscriber struct {
	queue []*runtimeapi.ContainerEventResponse
	more  chan struct{}
}

func (s *subscriber) put(e *runtimeapi.ContainerEventResponse) {
	s.queue = append(s.queue, e)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// emit notifies everybody who listens, with the statuses of the moment.
func (w *world) emit(id, sandboxID string, kind runtimeapi.ContainerEventType) {
	e := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	if s := w.sandboxes[sandboxID]; s != nil {
		e.PodSandboxStatus = s.status()
	}
	for _, c := range w.containersOf(sandboxID) {
		e.ContainersStatuses = append(e.ContainersStatuses, c.status())
	}
	if len(w.events.subscribers) == 0 {
		w.events.waiting = append(w.events.waiting, e)
		w.events.waiting = w.events.waiting[max(0, len(w.events.waiting)-held):]
	}
	for _, s := range w.events.subscribers {
		s.put(e)
	}
}

// GetContainerEvents sends events until the caller goes or the daemon does.
func (f *Fake) GetContainerEvents(r *runtimeapi.GetEventsRequest,
	out runtimeapi.RuntimeService_GetContainerEventsServer) error {
	return f.sendEvents(out.Context(), r, out.Send)
}

func (f *Fake) sendEvents(ctx context.Context, r *runtimeapi.GetEventsRequest,
	send func(*runtimeapi.ContainerEventResponse) error) error {
	if err := f.enter(ctx, "GetContainerEvents", r); err != nil {
		return err
	}
	s := &subscriber{more: make(chan struct{}, 1)}
	f.mu.Lock()
	for _, e := range f.w.events.waiting {
		s.put(e)
	}
	f.w.events.waiting = nil
	f.w.events.subscribers = append(f.w.events.subscribers, s)
	down := f.down
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.w.events.subscribers = slices.DeleteFunc(f.w.events.subscribers, func(o *subscriber) bool { return o == s })
	}()
	for {
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-down:
			return errDown()
		case <-s.more:
		}
		f.mu.Lock()
		queue := s.queue
		s.queue = nil
		f.mu.Unlock()
		for _, e := range queue {
			if err := send(e); err != nil {
				return err
			}
		}
	}
}

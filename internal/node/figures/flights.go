// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"context"
	"maps"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// flights are calls under way, one a pod, and the last answer of each. The zero value is ready.
type flights[T any] struct {
	mu    sync.Mutex
	known map[string]T // by sandbox
	going map[string]*flight
}

// flight is one call. It is late when somebody has waited for it in vain.
type flight struct {
	done chan struct{}
	late bool
}

// late reports whether somebody has waited in vain for a call that is still under way: asking about all pods at once
// would take as long.
func (f *flights[T]) late() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.going {
		if g.late {
			return true
		}
	}
	return false
}

// learn replaces all that is known.
func (f *flights[T]) learn(known map[string]T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = known
}

// each asks about every pod at the same time and returns what is known of each when all have answered, the reader's
// patience is over, or ctx ends.
func (f *flights[T]) each(ctx context.Context, r *Reader, sandboxes []*runtimeapi.PodSandbox,
	ask func(context.Context, string) (T, error)) map[string]T {
	var wait []*flight
	ids := map[string]bool{}
	f.mu.Lock()
	for _, b := range sandboxes {
		ids[b.GetId()] = true
		g := f.going[b.GetId()]
		if g == nil {
			g = f.begin(r, b.GetId(), ask)
		}
		if !g.late {
			wait = append(wait, g)
		}
	}
	f.mu.Unlock()

	enough := time.NewTimer(r.patience)
	defer enough.Stop()
	over := false
	for _, g := range wait {
		select {
		case <-g.done:
			continue
		default:
		}
		if over {
			f.giveUp(g)
			continue
		}
		select {
		case <-g.done:
		case <-enough.C:
			over = true
			f.giveUp(g)
		case <-ctx.Done():
			return f.all(ids)
		}
	}
	return f.all(ids)
}

// begin makes one call, whose answer counts whenever it comes. f.mu is held.
func (f *flights[T]) begin(r *Reader, id string, ask func(context.Context, string) (T, error)) *flight {
	g := &flight{done: make(chan struct{})}
	if f.going == nil {
		f.going = map[string]*flight{}
	}
	f.going[id] = g
	r.going.Go(func() {
		ctx, cancel := context.WithTimeout(r.life, longest)
		defer cancel()
		got, err := ask(ctx, id)
		f.mu.Lock()
		defer f.mu.Unlock()
		if err == nil {
			if f.known == nil {
				f.known = map[string]T{}
			}
			f.known[id] = got
		}
		delete(f.going, id)
		close(g.done)
	})
	return g
}

func (f *flights[T]) giveUp(g *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.late = true
}

// all is what is known of the pods that are there; what is known of others is forgotten.
func (f *flights[T]) all(ids map[string]bool) map[string]T {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.known, func(id string, _ T) bool { return !ids[id] })
	return maps.Clone(f.known)
}

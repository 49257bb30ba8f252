// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Crashes counts panics of controllers, and keeps them from ending the process. Kubernetes' libraries hand a panic in a
// goroutine of theirs to a list of handlers, and panic again when all have returned; the handler here does not return
// if the panic is that of a controller which runs now. A goroutine that a controller starts with the bare go statement
// is beyond reach.
type Crashes struct {
	counted *metrics.CounterVec

	mu     sync.Mutex
	guards map[*guard]bool
}

// CatchCrashes adds the handler. It acts on the whole process, since the libraries' list is one for all; call it once,
// before anything else runs.
func CatchCrashes() *Crashes {
	c := &Crashes{guards: map[*guard]bool{}, counted: metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace: "wherry", Subsystem: "controller", Name: "panics_total",
		Help:           "Panics of controllers, each of which was restarted afterwards.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller"})}
	_ = legacyregistry.Register(c.counted) // there is one already only if this was called twice
	utilruntime.PanicHandlers = append([]func(context.Context, any){c.handle}, utilruntime.PanicHandlers...)
	return c
}

// count counts a panic of a controller, for /metrics.
func (c *Crashes) count(controller string) {
	if c != nil {
		c.counted.WithLabelValues(controller).Inc()
	}
}

type guardKey struct{}

// handle ends the goroutine if the panic belongs to a controller: by the context that the goroutine had from it, else
// by whose functions are on the stack. That may be several controllers which share code, of which each is then
// restarted.
func (c *Crashes) handle(ctx context.Context, cause any) {
	stack := string(debug.Stack())
	owners := c.owners(ctx, stack)
	if len(owners) == 0 {
		return
	}
	for _, g := range owners {
		g.caught(cause, stack)
	}
	runtime.Goexit()
}

func (c *Crashes) owners(ctx context.Context, stack string) (found []*guard) {
	if g, ok := ctx.Value(guardKey{}).(*guard); ok {
		return []*guard{g}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.guards {
		if code := g.row.Code; code != "" && strings.Contains(stack, code+".") {
			found = append(found, g)
		}
	}
	return found
}

// watch has panics traced to a guard until the returned function is called.
func (c *Crashes) watch(g *guard) (leave func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guards[g] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.guards, g)
	}
}

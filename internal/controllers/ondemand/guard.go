// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/client-go/tools/cache"
)

// stopPatience is how long a controller that is to end may take; what hangs is left behind.
const stopPatience = 10 * time.Second

// guard runs one controller, and makes it anew when it ends by itself.
type guard struct {
	row     Controller
	manager *Manager
	crashed chan struct{} // has an element when the life that runs now has panicked
}

func (g *guard) run(ctx context.Context) {
	defer g.manager.crashes.watch(g)()
	for failures := 0; ; {
		began := time.Now()
		err := g.live(ctx)
		if ctx.Err() != nil {
			return
		}
		var pause time.Duration
		failures, pause = restart(failures, time.Since(began))
		g.manager.log.Error("controller ended, it is started again", "controller", g.row.Name, "err", err, "in", pause)
		wait := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// errPanic is the end of a controller whose panic has been logged.
var errPanic = errors.New("it has panicked")

// live is one life of the controller. What it has left in the shared informers is taken out again.
func (g *guard) live(ctx context.Context) (err error) {
	select {
	case <-g.crashed: // of the life before, whose goroutines may panic one after the other
	default:
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, guardKey{}, g))
	defer cancel()
	informers := newView(g)
	defer informers.close()
	done := make(chan error, 1)
	go func() {
		err := errPanic // what stays when a handler of crashes ends this goroutine
		defer func() { done <- err }()
		defer func() {
			if cause := recover(); cause != nil {
				g.caught(cause, string(debug.Stack()))
			}
		}()
		err = g.work(ctx, informers)
	}()
	select {
	case err := <-done:
		return err
	case <-g.crashed:
	case <-ctx.Done():
	}
	cancel()
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		g.manager.log.Error("controller does not end and is left behind", "controller", g.row.Name, "after",
			stopPatience)
	}
	return errPanic
}

func (g *guard) work(ctx context.Context, informers *view) error {
	kit, err := g.manager.kit(g.row, informers)
	if err != nil {
		return err
	}
	run, err := g.row.New(ctx, kit)
	if err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	close(informers.made)
	g.manager.startInformers()
	if !cache.WaitFor(ctx, "", informers.synced()...) {
		return nil // only the end of ctx ends the wait
	}
	g.manager.log.Debug("controller works", "controller", g.row.Name)
	run(ctx)
	return errors.New("it ended by itself")
}

// caught logs and counts a panic, and ends this life.
func (g *guard) caught(cause any, stack string) {
	g.manager.crashes.count(g.row.Name)
	g.manager.log.Error("controller panicked", "controller", g.row.Name, "err", fmt.Sprint(cause), "stack", stack)
	select {
	case g.crashed <- struct{}{}:
	default:
	}
}

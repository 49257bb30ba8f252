// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// component is one part of the server.
type component struct {
	name  string
	after []string                    // components that must be up before this one starts
	start func(context.Context) error // returns when the part is up; its ctx ends when the start is given up
	stop  func(context.Context) error // may be nil; called once, only if start succeeded
}

const (
	// startPatience is how long a start that was given up may go on: what is under way, such as an opening database, is
	// not always to be cut off.
	startPatience = 10 * time.Second
	// lastPatience is what a component has for its stop when the time for all of them is over.
	lastPatience = time.Second
)

// group starts and stops components.
type group struct {
	list []component
	log  *slog.Logger

	mu       sync.Mutex
	up       map[string]bool
	starting map[string]bool
}

// start brings all components up, those that do not wait for one another at the same time. On the first error it gives
// the others up, waits for them, though not for ever, and returns that error; what came up stays up until stop.
func (g *group) start(ctx context.Context) error {
	if err := checkOrder(g.list); err != nil {
		return err
	}
	g.up, g.starting = map[string]bool{}, map[string]bool{}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := map[string]chan struct{}{}
	for _, c := range g.list {
		done[c.name] = make(chan struct{})
	}
	var wg sync.WaitGroup
	for _, c := range g.list {
		wg.Go(func() {
			for _, name := range c.after {
				select {
				case <-done[name]:
				case <-ctx.Done():
					return
				}
			}
			began := time.Now()
			if ctx.Err() != nil {
				return
			}
			g.mark(c.name, true, false)
			err := c.start(ctx)
			g.mark(c.name, false, err == nil)
			if err != nil {
				cancel(named(c.name, err))
				return
			}
			close(done[c.name])
			g.log.Debug("component is up", "component", c.name, "took", time.Since(began).Round(time.Millisecond))
		})
	}
	all := make(chan struct{})
	go func() {
		wg.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-ctx.Done():
		select {
		case <-all:
		case <-time.After(startPatience):
			g.log.Error("parts of the server do not end their start and are left behind", "parts", g.hanging(), "after",
				startPatience)
		}
	}
	return context.Cause(ctx)
}

func (g *group) mark(name string, starting, up bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starting[name], g.up[name] = starting, up
}

func (g *group) isUp(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.up[name]
}

// hanging names the components whose start has not returned.
func (g *group) hanging() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.list {
		if g.starting[c.name] {
			names = append(names, c.name)
		}
	}
	return names
}

// named puts the component's name before its error, except before a Refusal, which speaks for itself.
func named(component string, err error) error {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return err
	}
	return fmt.Errorf("%s: %w", component, err)
}

// stop stops what is up, last of the list first, and returns all errors. One that does not heed the end of ctx is left
// behind.
func (g *group) stop(ctx context.Context) error {
	var errs []error
	for i := len(g.list) - 1; i >= 0; i-- {
		c := g.list[i]
		if !g.isUp(c.name) || c.stop == nil {
			continue
		}
		began := time.Now()
		if err := stopWithin(ctx, c.stop); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
		g.log.Debug("component stopped", "component", c.name, "took", time.Since(began).Round(time.Millisecond))
	}
	return errors.Join(errs...)
}

// stopWithin stops a component, and leaves it behind if it goes on for long after ctx has ended.
func stopWithin(ctx context.Context, stop func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- stop(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(lastPatience):
		return errors.New("did not end in time and is left behind")
	}
}

// checkOrder refuses a list in which a component waits for one that does not stand before it: stopping in reverse would
// then take away what is still in use, or nothing would ever start.
func checkOrder(list []component) error {
	seen := map[string]bool{}
	for _, c := range list {
		for _, name := range c.after {
			if !seen[name] {
				return fmt.Errorf("component %s is listed before %s, which it needs", c.name, name)
			}
		}
		if seen[c.name] {
			return fmt.Errorf("component %s is listed twice", c.name)
		}
		seen[c.name] = true
	}
	return nil
}

// background is a part's endless loop.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// spawn runs loop until its stop is called. A loop that ends before that is reported to failed.
func spawn(name string, failed chan<- error, loop func(context.Context) error) *background {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = loop(ctx)
		if ctx.Err() != nil {
			return
		}
		err := b.err
		if err == nil {
			err = errors.New("ended unexpectedly")
		}
		select {
		case failed <- fmt.Errorf("%s: %w", name, err):
		default: // another part has failed already; the first failure is the one to report
		}
	}()
	return b
}

// await returns when ready is closed; with the loop's error if it ends before; and if ctx ends before, it stops the
// loop.
func (b *background) await(ctx context.Context, ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-b.done:
		if b.err != nil {
			return b.err
		}
		return errors.New("ended before it was ready")
	case <-ctx.Done():
		_ = b.stop(context.Background()) // the start was given up; its reason is the error to return
		return ctx.Err()
	}
}

// stop ends the loop and waits for it, at most until ctx ends. An error that is only the cancellation is none.
func (b *background) stop(ctx context.Context) error {
	b.cancel()
	select {
	case <-b.done:
	case <-ctx.Done():
		return errors.New("did not stop in time")
	}
	if errors.Is(b.err, context.Canceled) {
		return nil
	}
	return b.err
}

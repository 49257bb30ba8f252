// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Loop is a queue of names and what is done for each.
type Loop struct {
	// Name is the controller's, for logs.
	Name string
	Log  *slog.Logger
	// Sync brings the object with the name to what it should be; an error means once more, later.
	Sync func(ctx context.Context, name string) error
	// Workers is how many names are worked on at once.
	Workers int

	queue   workqueue.TypedRateLimitingInterface[string]
	watched []watched
}

type watched struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// New makes a loop with one worker.
func New(name string, log *slog.Logger, sync func(ctx context.Context, name string) error) *Loop {
	return &Loop{
		Name: name, Log: log, Sync: sync, Workers: 1,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: unhurried{}}),
	}
}

// unhurried is the clock of queues. They have a timer for what is to be done next, and a ticker of 10 s in case that
// fails, which wakes a server of many loops twice a second for nothing.
type unhurried struct{ clock.RealClock }

// NewTicker implements clock.WithTicker.
func (c unhurried) NewTicker(d time.Duration) clock.Ticker {
	return c.RealClock.NewTicker(max(d, 10*time.Minute))
}

// Watch calls changed for every object of an informer that is there, comes, changes or goes.
func (l *Loop) Watch(informer cache.SharedIndexInformer, changed func(obj any)) {
	l.watched = append(l.watched, watched{informer, cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) { changed(Gone(obj)) },
	}})
}

// Gone is the object of a deletion, the last that was known of it when the deletion itself was missed.
func Gone(obj any) any {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return last.Obj
	}
	return obj
}

// Add asks for the name to be worked on now.
func (l *Loop) Add(name string) { l.queue.Add(name) }

// Run works until ctx is done. It is called once.
func (l *Loop) Run(ctx context.Context) error {
	defer l.queue.ShutDown()
	var synced []cache.DoneChecker
	for _, w := range l.watched {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil && ctx.Err() != nil {
			return nil // the informers ended with it, a moment before
		}
		if err != nil {
			return fmt.Errorf("%s: watch: %w", l.Name, err)
		}
		defer func() { _ = w.informer.RemoveEventHandler(registration) }()
		synced = append(synced, registration.HasSyncedChecker())
	}
	if !cache.WaitFor(ctx, "", synced...) {
		return nil // only the end of ctx ends the wait
	}
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.queue.ShutDown()
	workers.Wait()
	return nil
}

func (l *Loop) next(ctx context.Context) bool {
	name, ended := l.queue.Get()
	if ended {
		return false
	}
	defer l.queue.Done(name)
	err := l.Sync(ctx, name)
	var later Later
	switch {
	case ctx.Err() != nil:
	case err == nil:
		l.queue.Forget(name)
	case errors.As(err, &later) && later.After > 0:
		l.queue.Forget(name)
		l.queue.AddAfter(name, later.After)
	case errors.As(err, &later):
		l.queue.AddRateLimited(name)
	default:
		l.Log.Warn("controller will try again", "controller", l.Name, "name", name, "err", err)
		l.queue.AddRateLimited(name)
	}
	return true
}

// Later is the error of a Sync that is not done though nothing went wrong: it wants to look again, after a while or,
// when that is zero, later and later.
type Later struct {
	After time.Duration
	Why   string
}

// Error implements error.
func (l Later) Error() string { return l.Why }

// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/wherryproject/wherry/internal/controllers/loop"
	"github.com/wherryproject/wherry/internal/features"
)

// Name is the scheduler that pods get who ask for none.
const Name = corev1.DefaultSchedulerName

// binders is how many pods are bound at once.
const binders = 16

// Scheduler gives pods a node.
type Scheduler struct {
	client     kubernetes.Interface
	features   *features.Gates
	log        *slog.Logger
	pods       cache.SharedIndexInformer
	nodes      cache.SharedIndexInformer
	namespaces cache.SharedIndexInformer
	volumes    *volumeBook
}

// New makes a scheduler; the caller starts the factory's informers. A pod that needs a feature that is off in gates
// stays unschedulable (SC-18).
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, gates *features.Gates,
	log *slog.Logger) *Scheduler {
	core := factory.Core().V1()
	return &Scheduler{
		client: client, features: gates, log: log,
		pods: core.Pods().Informer(), nodes: core.Nodes().Informer(), namespaces: core.Namespaces().Informer(),
		volumes: &volumeBook{factory: factory, pods: core.Pods().Lister()},
	}
}

// Run schedules until ctx is done. It is called once.
func (s *Scheduler) Run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	r := &run{
		client: s.client, features: s.features, log: s.log, box: newMailbox(), state: newState(),
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Name}),
		work:    make(chan func(context.Context)),
		volumes: s.volumes,
	}
	var others sync.WaitGroup
	defer others.Wait()
	for range binders {
		others.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case do := <-r.work:
					do(ctx)
				}
			}
		})
	}
	leave, synced, err := s.subscribe(r)
	defer leave()
	if err != nil && ctx.Err() != nil {
		return nil // the informers ended with it, a moment before
	}
	if err != nil {
		return err
	}
	// What is known at the start comes as a whole: no pod is placed before all that is on the nodes has been counted.
	if !cache.WaitFor(ctx, "", synced...) {
		return nil
	}
	r.loop(ctx)
	return nil
}

// subscribe sends the informers' events to the mailbox of r.
func (s *Scheduler) subscribe(r *run) (leave func(), synced []cache.DoneChecker, err error) {
	var undo []func()
	leave = func() {
		for _, f := range undo {
			f()
		}
	}
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		set, del func(any)
	}{
		{s.nodes, func(o any) { r.state.setNode(o.(*corev1.Node)) },
			func(o any) { r.state.deleteNode(o.(*corev1.Node)) }},
		{s.pods, func(o any) { r.state.setPod(o.(*corev1.Pod)) }, func(o any) { r.state.deletePod(o.(*corev1.Pod)) }},
		{s.namespaces, func(o any) { r.state.setNamespace(o.(*corev1.Namespace)) },
			func(o any) { r.state.deleteNamespace(o.(*corev1.Namespace)) }},
	} {
		registration, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { r.box.send(func() { w.set(o) }) },
			UpdateFunc: func(_, o any) { r.box.send(func() { w.set(o) }) },
			DeleteFunc: func(o any) { r.box.send(func() { w.del(loop.Gone(o)) }) },
		})
		if err != nil {
			return leave, nil, fmt.Errorf("scheduler: watch: %w", err)
		}
		undo = append(undo, func() { _ = w.informer.RemoveEventHandler(registration) })
		synced = append(synced, registration.HasSyncedChecker())
	}
	return leave, synced, nil
}

// run is a scheduler at work. Its state belongs to the goroutine in loop.
type run struct {
	client   kubernetes.Interface
	features *features.Gates
	log      *slog.Logger
	events   record.EventRecorder
	box      *mailbox
	state    *state
	work     chan func(context.Context) // for the binders
	todo     []func(context.Context)    // not yet taken by one
	volumes  *volumeBook
	promised map[string][]*corev1.Pod // see [state.promised]; as of the pod that is being decided about
}

func (r *run) loop(ctx context.Context) {
	var timer *time.Timer
	for {
		for _, message := range r.box.take() {
			message()
		}
		r.todo = append(r.todo, r.place(ctx, time.Now())...)
		var wake <-chan time.Time
		if at, ok := r.state.nextRetry(); ok {
			if timer != nil {
				timer.Stop()
			}
			timer = time.NewTimer(time.Until(at))
			wake = timer.C
		}
		var give chan func(context.Context)
		var next func(context.Context)
		if len(r.todo) > 0 {
			give, next = r.work, r.todo[0]
		}
		select {
		case <-ctx.Done():
			if timer != nil {
				timer.Stop()
			}
			return
		case <-r.box.ready:
		case <-wake:
		case give <- next:
			r.todo = r.todo[1:]
		}
	}
}

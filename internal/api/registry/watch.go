// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// explained is a watch of the store whose errors are in words a client acts upon. Unlike the library's watch.Filter it
// ends when it is stopped, also with an event in hand that nobody reads any more.
type explained struct {
	from    watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

func explain(from watch.Interface) *explained {
	w := &explained{from: from, events: make(chan watch.Event), stopped: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.stopped) })
	go w.pass()
	return w
}

// ResultChan implements watch.Interface.
func (w *explained) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *explained) Stop() {
	w.stop()
	w.from.Stop()
}

func (w *explained) pass() {
	defer close(w.events)
	for e := range w.from.ResultChan() {
		select {
		case w.events <- forgotten(e):
		case <-w.stopped:
			return
		}
	}
}

// forgotten makes 410 Gone, on which clients list again, of the library's internal error about a change whose earlier
// state was compacted away: that is what a watch from just before a compaction gets, and, asked again, would get until
// the next one.
func forgotten(e watch.Event) watch.Event {
	if status, ok := e.Object.(*metav1.Status); ok && e.Type == watch.Error &&
		strings.Contains(status.Message, "PrevKv=nil") {
		e.Object = &apierrors.NewResourceExpired("the resourceVersion of this watch is too old: list again").ErrStatus
	}
	return e
}

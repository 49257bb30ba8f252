// SPDX-License-Identifier: Apache-2.0

package firsts

import (
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Listener is told what is there for the first time. It is called while the writer waits, and must not block.
type Listener interface {
	Kind(schema.GroupResource) // has an object
	Owned()                    // there is an object for the garbage collector: see Collectable
}

// Board keeps what kinds have been seen. The zero value is ready; a nil one hears nothing.
type Board struct {
	seen  sync.Map // of schema.GroupResource
	owned atomic.Bool

	mu        sync.Mutex // orders tellings and subscriptions
	listeners []Listener
}

// Wrote is told of every object that was stored.
func (b *Board) Wrote(kind schema.GroupResource, obj runtime.Object) {
	if b == nil {
		return
	}
	if _, ok := b.seen.Load(kind); !ok {
		b.first(func() bool { _, had := b.seen.LoadOrStore(kind, true); return !had },
			func(l Listener) { l.Kind(kind) })
	}
	if b.owned.Load() {
		return
	}
	if o, ok := obj.(metav1.Object); ok && Collectable(o) {
		b.first(func() bool { return b.owned.CompareAndSwap(false, true) }, Listener.Owned)
	}
}

func (b *Board) first(is func() bool, tell func(Listener)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !is() {
		return
	}
	for _, l := range b.listeners {
		tell(l)
	}
}

// Subscribe tells a listener what was told before, and everything from now on until the returned function is called.
func (b *Board) Subscribe(l Listener) (leave func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.Range(func(kind, _ any) bool {
		l.Kind(kind.(schema.GroupResource))
		return true
	})
	if b.owned.Load() {
		l.Owned()
	}
	b.listeners = append(b.listeners, l)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, have := range b.listeners {
			if have == l {
				b.listeners = append(b.listeners[:i:i], b.listeners[i+1:]...)
				return
			}
		}
	}
}

// Collectable tells whether an object is one that the garbage collector may have to act on: it has an owner, or it is
// being deleted in a way that the collector completes. A node as the only owner does not count: every server has such
// leases, and who deletes a node sees to them.
func Collectable(o metav1.Object) bool {
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind != "Node" || owner.APIVersion != "v1" {
			return true
		}
	}
	if o.GetDeletionTimestamp() == nil {
		return false
	}
	for _, f := range o.GetFinalizers() {
		if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents {
			return true
		}
	}
	return false
}

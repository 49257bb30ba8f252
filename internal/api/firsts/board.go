// SPDX-License-Identifier: Apache-2.0

package firsts

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Wait is what somebody waits for.
type Wait struct {
	Kind schema.GroupResource // zero: any kind
	// If is asked of each object; nil: any is waited for. If and Then are called while the writer waits: they must not
	// block, nor keep the object.
	If   func(schema.GroupResource, runtime.Object) bool
	Then func(schema.GroupResource)
	Keep bool // Then is called again and again
}

// Board keeps who waits. The zero value is ready; a nil one does nothing.
type Board struct {
	waits atomic.Pointer[byKind]
	mu    sync.Mutex // of those who replace waits, which are never changed
}

type byKind map[schema.GroupResource][]*Wait

// Wrote is called with every object that was stored.
func (b *Board) Wrote(kind schema.GroupResource, obj runtime.Object) {
	if b == nil {
		return
	}
	waits := b.waits.Load()
	if waits == nil || len(*waits) == 0 {
		return
	}
	for _, list := range [][]*Wait{(*waits)[kind], (*waits)[schema.GroupResource{}]} {
		for _, w := range list {
			if (w.If == nil || w.If(kind, obj)) && (w.Keep || b.forget(w)) {
				w.Then(kind)
			}
		}
	}
}

// Await has w called at the first write that is what it waits for, from now on.
func (b *Board) Await(w Wait) (leave func()) {
	if b == nil {
		return func() {}
	}
	b.change(func(all byKind) { all[w.Kind] = append(slices.Clip(all[w.Kind]), &w) })
	return func() { b.forget(&w) }
}

// forget removes a wait and reports whether it was there.
func (b *Board) forget(w *Wait) (had bool) {
	b.change(func(all byKind) {
		if i := slices.Index(all[w.Kind], w); i >= 0 {
			had = true
			all[w.Kind] = slices.Delete(slices.Clone(all[w.Kind]), i, i+1)
			if len(all[w.Kind]) == 0 {
				delete(all, w.Kind)
			}
		}
	})
	return had
}

func (b *Board) change(do func(byKind)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := byKind{}
	if have := b.waits.Load(); have != nil {
		all = maps.Clone(*have)
	}
	do(all)
	b.waits.Store(&all)
}

// Collectable reports whether an object is one that the garbage collector may have to act on: it has an owner, or it is
// being deleted in a way that the collector completes. A node as the only owner does not count: every server has such
// leases, and who deletes a node sees to them.
func Collectable(_ schema.GroupResource, obj runtime.Object) bool {
	o, ok := obj.(metav1.Object)
	if !ok {
		return false
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Kind != "Node" || owner.APIVersion != "v1" {
			return true
		}
	}
	return o.GetDeletionTimestamp() != nil && slices.ContainsFunc(o.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
}

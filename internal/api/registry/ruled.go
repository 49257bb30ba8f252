// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/onwrite"
)

// Ruled remembers which namespaces have, or had, an object of one kind that rules over others (a LimitRange, a
// ResourceQuota), so that creating objects elsewhere costs no read. For a kind of the cluster there is one place, "".
// It is filled from the store when it is first used, and follows what this server writes; what another one writes into
// the same etcd is seen only if the kind is watched.
type Ruled struct {
	Of     *REST
	counts func(runtime.Object) bool // whether an object rules; nil: every one does

	mu     sync.Mutex
	loaded bool
	names  map[string]bool
}

// NewRuled makes the set of a kind and keeps it up to date from here on.
func NewRuled(r *REST) *Ruled {
	return NewRuledBy(r, nil)
}

// NewRuledBy is newRuled where only some objects of the kind rule: those that counts says.
func NewRuledBy(r *REST, counts func(runtime.Object) bool) *Ruled {
	set := &Ruled{Of: r, counts: counts, names: map[string]bool{}}
	calls := onwrite.Calls{Created: set.note}
	if counts != nil { // what did not rule may do so when it has changed
		calls.Updated = set.note
	}
	r.OnWrite.Add(calls)
	return set
}

func (r *Ruled) note(obj runtime.Object) {
	if o, err := meta.Accessor(obj); err == nil && (r.counts == nil || r.counts(obj)) {
		r.add(o.GetNamespace())
	}
}

func (r *Ruled) add(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[namespace] = true
}

// Has reports whether a namespace may have an object of the kind.
func (r *Ruled) Has(ctx context.Context, namespace string) (bool, error) {
	if err := r.Load(ctx); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[namespace], nil
}

// Known is has without a read, for when nobody can be told of an error.
func (r *Ruled) Known(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[namespace]
}

// Load fills the set from the store, once.
func (r *Ruled) Load(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded {
		return nil
	}
	list, err := r.Of.List(r.Of.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the %s: %w", r.Of.Kind.Plural, err)
	}
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		o, err := meta.Accessor(obj)
		if err == nil && (r.counts == nil || r.counts(obj)) {
			r.names[o.GetNamespace()] = true
		}
		return err
	})
	r.loaded = err == nil
	return err
}

// All are the namespaces that may have an object of the kind, once loaded.
func (r *Ruled) All() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.names {
		names = append(names, name)
	}
	return names
}

// Watch has a rule for the whole cluster count that another server on the same etcd stores. Once there is one, every
// request reads the rules. It is for kinds without a namespace.
func (r *Ruled) Watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.Of.Follow(ctx, First(func() {
		r.add("")
		cancel()
	}))
}

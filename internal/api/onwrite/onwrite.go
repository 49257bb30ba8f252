// SPDX-License-Identifier: Apache-2.0

package onwrite

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Calls are what one party wants to have called around writes. Each may be nil. What is handed to Created, Updated and
// Deleted may be kept but not changed: it is what the client is answered with.
type Calls struct {
	// Creating and Updating are called before an object is stored, after validation and admission, and may change obj.
	// An error refuses the write, as it is. The function returned, which may be nil, is called when the write has
	// ended, with whether it happened; for a dry run that is whether it would have happened.
	Creating func(obj runtime.Object, dry bool) (Finish, error)
	Updating func(obj, old runtime.Object, dry bool) (Finish, error)

	// Created, Updated and Deleted are called after a write, before the client has its answer; never for a dry run.
	Created, Updated, Deleted func(obj runtime.Object)
}

// Finish is called with whether a write has happened.
type Finish func(ok bool)

// Hooks makes the calls of all parties. Make it with Of.
type Hooks struct{ calls []Calls }

// Of takes over the hooks of a store that has none yet.
func Of(store *registry.Store) *Hooks {
	h := &Hooks{}
	store.BeginCreate = func(ctx context.Context, obj runtime.Object,
		o *metav1.CreateOptions) (registry.FinishFunc, error) {
		return h.begin(ctx, func(c Calls) (Finish, error) {
			if c.Creating == nil {
				return nil, nil
			}
			return c.Creating(obj, dryrun.IsDryRun(o.DryRun))
		})
	}
	store.BeginUpdate = func(ctx context.Context, obj, old runtime.Object,
		o *metav1.UpdateOptions) (registry.FinishFunc, error) {
		return h.begin(ctx, func(c Calls) (Finish, error) {
			if c.Updating == nil {
				return nil, nil
			}
			return c.Updating(obj, old, dryrun.IsDryRun(o.DryRun))
		})
	}
	store.AfterCreate = func(obj runtime.Object, o *metav1.CreateOptions) {
		h.after(obj, o != nil && dryrun.IsDryRun(o.DryRun), func(c Calls) func(runtime.Object) { return c.Created })
	}
	store.AfterUpdate = func(obj runtime.Object, o *metav1.UpdateOptions) {
		h.after(obj, o != nil && dryrun.IsDryRun(o.DryRun), func(c Calls) func(runtime.Object) { return c.Updated })
	}
	store.AfterDelete = func(obj runtime.Object, o *metav1.DeleteOptions) {
		h.after(obj, o != nil && dryrun.IsDryRun(o.DryRun), func(c Calls) func(runtime.Object) { return c.Deleted })
	}
	return h
}

// Add has calls made, after those that were added before. It must not be called once the store is in use.
func (h *Hooks) Add(c Calls) { h.calls = append(h.calls, c) }

// begin makes one call of each party. If one refuses, Finish(false) is called on those before it.
func (h *Hooks) begin(ctx context.Context, call func(Calls) (Finish, error)) (registry.FinishFunc, error) {
	var begun []Finish
	finish := func(_ context.Context, ok bool) {
		for _, f := range slices.Backward(begun) {
			f(ok)
		}
	}
	for _, c := range h.calls {
		f, err := call(c)
		if err != nil {
			finish(ctx, false)
			return nil, err
		}
		if f != nil {
			begun = append(begun, f)
		}
	}
	return finish, nil
}

func (h *Hooks) after(obj runtime.Object, dry bool, of func(Calls) func(runtime.Object)) {
	if dry {
		return
	}
	for _, c := range h.calls {
		if call := of(c); call != nil {
			call(obj)
		}
	}
}

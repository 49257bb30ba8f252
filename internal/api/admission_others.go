// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"github.com/wherryproject/wherry/internal/api/registry"
)

// watch has the plug-in made when another server on the same etcd stores its first rule. Once there is a rule, the plug-in hears of
// the others by itself.
func (p *onDemand) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.rules.Follow(ctx, firstRule(func() {
		p.active.Store(true)
		cancel()
	}))
}

// watch has a rule for the whole cluster count that another server on the same etcd stores. Once there is one, every request reads
// the rules. It is for kinds without a namespace.
func (r *ruled) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.rest.Follow(ctx, firstRule(func() {
		r.add("")
		cancel()
	}))
}

// firstRule waits for an object of a kind.
type firstRule func()

var _ registry.Follower = firstRule(nil)

// Add implements cache.ReflectorStore.
func (r firstRule) Add(any) error {
	r()
	return nil
}

// Update implements cache.ReflectorStore.
func (r firstRule) Update(obj any) error { return r.Add(obj) }

// Delete implements cache.ReflectorStore.
func (firstRule) Delete(any) error { return nil }

// Replace implements cache.ReflectorStore.
func (r firstRule) Replace(all []any, _ string) error {
	if len(all) > 0 {
		return r.Add(nil)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (firstRule) Resync() error { return nil }

// Bookmark implements cache.ReflectorBookmarkStore.
func (firstRule) Bookmark(string) error { return nil }

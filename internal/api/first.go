// SPDX-License-Identifier: Apache-2.0

package api

import "github.com/wherryproject/wherry/internal/api/registry"

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

// SPDX-License-Identifier: Apache-2.0

package registry

// First waits for an object of a kind.
type First func()

var _ Follower = First(nil)

// Add implements cache.ReflectorStore.
func (r First) Add(any) error {
	r()
	return nil
}

// Update implements cache.ReflectorStore.
func (r First) Update(obj any) error { return r.Add(obj) }

// Delete implements cache.ReflectorStore.
func (First) Delete(any) error { return nil }

// Replace implements cache.ReflectorStore.
func (r First) Replace(all []any, _ string) error {
	if len(all) > 0 {
		return r.Add(nil)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (First) Resync() error { return nil }

// Bookmark implements cache.ReflectorBookmarkStore.
func (First) Bookmark(string) error { return nil }

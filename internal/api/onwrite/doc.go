// SPDX-License-Identifier: Apache-2.0

// Package onwrite composes what is called around the writes through one genericregistry.Store.
//
// The library has one place for each hook of a store, so whoever assigns one silently drops what was there before. Of
// assigns each of them once, to a Hooks; everybody else adds Calls to that. All calls added are made, in the order in
// which they were added, and copies of the store (which subresources write through) make them too, whenever they were
// copied. Nobody else assigns a store's hooks: internal/check forbids it.
package onwrite

// SPDX-License-Identifier: Apache-2.0

// Package deeptree removes folders, however deep they are nested. Programs in containers can nest them deeper than a
// process may have files open, and than a path may be long; os.RemoveAll keeps one descriptor open for each level.
//
// Remove and Empty are all there is. Their law: a bounded number of descriptors, nothing through a symlink or a mount.
package deeptree

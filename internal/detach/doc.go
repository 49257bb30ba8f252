// SPDX-License-Identifier: Apache-2.0

// Package detach takes away file systems whose server may not answer any more: network file systems and those in user
// space. Whoever walks a path into one of these, as to unmount what is mounted on a folder of it, may wait for ever,
// and then not even end when it is killed.
//
// Remote is all there is. Its law: no path that leads through such a file system is looked up.
package detach

// SPDX-License-Identifier: Apache-2.0

// Package mountfd has the mounts of containers in hand: [Clone] and [CloneAt] copy a mount as one that nobody else
// shares, [Within] finds a path as the processes of a container would, and [Attach] puts the one at the other.
//
// Its law: what was found is held by a descriptor from then on, so that no rename, symlink or mount of the container's
// leads anywhere else afterwards (DA-08). A clone can be written to only if that was asked for. The kernel has the
// calls since Linux 5.12.
package mountfd

// SPDX-License-Identifier: Apache-2.0

// Package capture has the bundles of wherry capture: what is needed to look at a pod or container later and elsewhere
// (DA-12). A bundle is a tar archive, packed by zstd, of files that any other tool can read too; the last of them, a
// [Manifest], says of what and when it was taken, and what is not in it and why. A [Writer] makes one within its
// limits, [Read] reads one, and [Summary] describes it in words. [Mask] takes the values of environment variables out
// of an object.
//
// Its law: what cannot be had is named, and never left out in silence; what is read of a bundle may come from anybody,
// is bounded, and is never unpacked onto a disk.
package capture

// SPDX-License-Identifier: Apache-2.0

// Package copyfiles packs and unpacks the local side of a copy as tar streams: [Pack] writes a file or a tree,
// [Unpacker] creates one from streams that somebody else produced, [Passer] hands them on. A [Sender] packs for the
// toolbox's cp-unpack --keep, over one connection after the other: after a cut it sends what is not there yet.
//
// Its law: nothing in a stream reaches a file outside the destination folder, whatever its names and links say. And
// what the other side of a copy says it has is believed only if its checksum is that of what is here.
package copyfiles

// SPDX-License-Identifier: Apache-2.0

// Package copyfiles packs and unpacks the local side of a copy, as tar streams: [Pack] writes a file or a tree, [Unpack] makes
// one from a stream of somebody else's.
//
// Its law: nothing in a stream reaches a file outside the folder that is unpacked into, whatever its names and links say.
package copyfiles

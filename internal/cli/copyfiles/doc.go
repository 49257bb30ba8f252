// SPDX-License-Identifier: Apache-2.0

// Package copyfiles packs and unpacks the local side of a copy as tar streams: [Pack] writes a file or a tree, [Unpack]
// creates one from a stream that somebody else produced.
//
// Its law: nothing in a stream reaches a file outside the destination folder, whatever its names and links say.
package copyfiles

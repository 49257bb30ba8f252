// SPDX-License-Identifier: Apache-2.0

// Package wire is what a server and its resolver say to each other on the resolver's socket: lines of JSON. The server
// opens with a [Want] and is answered with who is there ([Hello]). To feed, it then sends [Line]s: the settings, the
// world as a whole between Begin and End, and each change from then on; the resolver sends [Notice].
//
// [Line]s are also what the resolver's file holds, from which it starts when there is no server.
//
// Its law: both ends may be of different versions. What one does not know it ignores; what would change its meaning
// takes a new [Protocol].
//
// Pure.
package wire

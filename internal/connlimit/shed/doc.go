// SPDX-License-Identifier: Apache-2.0

// Package shed decides which connections of a port are closed when there are too many of them: [Excess]. There are
// two kinds: those of strangers, on which nobody has shown credentials yet, and those of known users.
//
// Its laws: a stranger's connection never costs a known user's; within a kind the share is equal, so that whoever has
// most loses first (an address among strangers, a user among the known); within a share the connection that has been
// quiet longest goes first, so that one that was just opened has the time for its credentials.
//
// Pure.
package shed

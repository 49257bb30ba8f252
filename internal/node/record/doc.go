// SPDX-License-Identifier: Apache-2.0

// Package record is what a node remembers of its pods beside the store: one file in each pod's folder, with the pod as
// the node saw it last and the id of the store that it came from.
//
// While all is well nobody reads them. When a server starts on a store that was lost, or that was put back to an older
// state, they tell pods that were deleted in order from pods that the store has merely forgotten ([Unknown]); the
// latter must not be ended without a word, and can be written back as they were.
//
// Its law: a record is never a reason to change a pod by itself, and a missing one never an error.
package record

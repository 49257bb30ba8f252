// SPDX-License-Identifier: Apache-2.0

// Package podgc deletes pods that nobody else will: those of nodes that are gone, those that were deleted before they
// had a node, and the oldest of those that have ended when there are too many.
//
// Controller is a loop over names of nodes and two special names. The law: a node counts as gone only when the API
// server itself answers so, and answered so a while ago too; a node may be away for a moment, but its pods' data would
// be gone for good.
package podgc

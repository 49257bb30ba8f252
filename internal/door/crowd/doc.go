// SPDX-License-Identifier: Apache-2.0

// Package crowd decides which connections of a port are closed when there are too many of them: [Excess]. It knows two
// crowds: strangers, on whose connections nobody has shown credentials yet, and known users.
//
// Its laws: strangers never push out somebody known; in a crowd the share is equal, so that whoever has most loses
// first (an address among strangers, a user among the known); within a share the one that has been quiet longest goes
// first, so that somebody who has just come and goes on has the time to show who they are.
//
// Pure.
package crowd

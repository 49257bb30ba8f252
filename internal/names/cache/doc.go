// SPDX-License-Identifier: Apache-2.0

// Package cache keeps for a while what other resolvers have answered, as they wrote it.
//
// [Cache] is the one type: Put keeps an answer, Get makes one of it for another query, with the time that it has been
// kept taken off its records' time to live. [Checked] refuses messages that are not the answer to a query.
//
// The law: it is pure, and small: a bounded number of answers, none kept longer than it says or than [Longest]. An
// answer is kept for those that ask in the very same way.
//
// Pure.
package cache

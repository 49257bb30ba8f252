// SPDX-License-Identifier: Apache-2.0

// Package decide says where packets to services go: which chains, map entries and sets of clients the kernel should
// have for the Services and EndpointSlices that there are.
//
// Pure.
//
// [Of] decides about one Service; its [Part] depends on nothing else, so that a change of one costs nothing for the
// others. [Merge] puts parts together into [Tables], in which each address and port belongs to one Service: the oldest
// that wants it. [Diff] is what makes of the tables that are there those that should be, and [Flows] which remembered
// UDP flows lead to where they should not any more.
//
// The laws: the same objects give the same tables, in whatever order they are handed in; what [Diff] says, done to the
// one, gives the other; and nothing in a table points to a chain that is not in it.
package decide

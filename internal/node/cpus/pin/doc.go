// SPDX-License-Identifier: Apache-2.0

// Package pin decides which CPUs containers have to themselves (PL-33).
//
// Pure.
//
// A [Machine] says which CPUs there are and how they lie together; [Whole] which containers get some to themselves;
// [Choose] which ones those are: near to one another, in as few sockets and cores as can be.
//
// Its law: a CPU is never of two living containers, but for those that an init container of the same pod has had;
// reserved ones are nobody's; and whoever has none of his own shares what is left, which is never nothing.
package pin

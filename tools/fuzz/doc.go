// SPDX-License-Identifier: Apache-2.0

// Fuzz runs each fuzz target of the repository for a while, several at a time. `make fuzz` and CI run it at the root.
//
// Go keeps what widens the coverage in its cache, and the next run begins with it. An input that fails is written below
// the package's testdata/fuzz, where git sees it, and printed whole: it is committed with the mending.
//
// Go's fuzzer also fails where nothing was found: when the time is up in the middle of an input, when a busy machine
// lets an input wait for ten seconds, or when the kernel ends the process for want of memory. Judge tells these apart
// from a finding; what is in doubt is run once more, alone.
package main

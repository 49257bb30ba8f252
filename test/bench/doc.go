// SPDX-License-Identifier: Apache-2.0

// Command bench measures Wherry on this machine and writes docs/benchmarks.md. A server of its own, in a folder of its
// own, is measured against bare CRI calls to the very runtime in it (through <data-dir>/cri.sock), so that what is left
// is Wherry's share. It needs root and a built bin/wherry:
//
//	go run ./test/bench                        # all rows, writes docs/benchmarks.md
//	go run ./test/bench -rows pod,exec -n 5 # some rows, to the terminal only
//
// The law: a row's two sides run in turns (A B A B …) in one run, so that both meet the same machine; a figure is the
// median; a ratio is the ratio of the medians. Whatever a row makes it removes, and it fails if it cannot.
package main

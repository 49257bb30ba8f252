// SPDX-License-Identifier: Apache-2.0

// Alike runs a Go program so that its runs are alike: what Go's runtime leaves to chance or to the clock is decided
// before the program's first instruction. The program's file is not changed; its memory is, by ptrace, between its
// start and its first instruction, and then it is let go:
//
//	alike -seed 7 bin/simulate/test -test.run '^TestWorlds$' -seed 7 -seeds 1
//
// What it changes, and why:
//
//   - The 16 random bytes that the kernel gives to a program (AT_RANDOM), from which the runtime seeds its generators:
//     the order of maps and of select, what is hashed, names of temporary files. They follow from the seed.
//   - No part of the program is put at a random address.
//   - runtime.sysmon, the thread that interrupts goroutines, takes the processor from those in system calls, polls the
//     network and has garbage collected, all by the clock: it sleeps for ever.
//   - The clock by which sync.Mutex finds that somebody has waited too long, who then comes first: it stands still.
//
// With GOMAXPROCS=1, goroutines then take turns only where they wait, and nobody chooses but the seeded generator. So it
// is for programs whose goroutines all wait at some time, and whose system calls end by themselves: nobody else runs
// meanwhile. What a program learns from outside (the clock, other processes) is not changed.
//
// It ends as the program ends; 3 says that it cannot be done here, and why.
package main

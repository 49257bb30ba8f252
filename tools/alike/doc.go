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
//     the order of maps, of select and of timers of one instant, what is hashed, where the heap is, names of temporary
//     files. They follow from the seed, and no part of the program is put at a random address.
//   - runtime.sysmon, the thread that interrupts goroutines, takes the processor from those in system calls, polls the
//     network and has garbage collected, all by the clock: it sleeps for ever.
//   - runtime.stealWork, which draws from a generator whenever there is nothing to do, and so by how quickly others
//     answer: with one processor there is nobody to steal from, and it says so at once.
//   - runtime.main holds its goroutine to the first thread while packages are initialised, so that others have threads
//     of their own, each with a generator of its own; which one they have is a race of threads. It is unlocked before
//     the first of them: from then on everything runs on one thread.
//   - The clock by which sync.Mutex finds that somebody has waited too long, who then comes first: it stands still.
//   - With -mounts, what the kernel says of the program's mounts, in whose lines there are numbers of the machine's.
//   - The environment: one processor (GOMAXPROCS), no collection of garbage (GOGC; below 4 GiB), no sampling of memory.
//
// Goroutines then take turns where they wait, and nobody chooses but the seeded generator. So it is for programs whose
// goroutines all wait at some time, and whose system calls end by themselves: nobody else runs meanwhile. What a
// program learns from outside (the clock, other processes, files) is not changed.
//
// It knows the runtime of one version of Go on amd64, and refuses a program with another, or whose functions do not
// look as they did. It ends as the program ends, with 1 if a signal ended that, and with 3 if it cannot do what it is
// for.
package main

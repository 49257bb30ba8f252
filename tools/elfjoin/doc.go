// SPDX-License-Identifier: Apache-2.0

// Elfjoin makes one ELF file of two programs that live at different addresses and of a third, of a few instructions,
// that begins and chooses between them:
//
//	elfjoin -o wherry -entry entry main short
//
// An ELF file may have any number of loadable segments. The kernel maps those of all three; only what is touched takes
// memory. The entry program has a symbol "programs", an array of two addresses, which is given the entry points of main
// and short; it jumps to one of them with the stack as it found it. Its law: what comes out is main, byte for byte and
// with the same sections, and something behind it; what cannot be joined so is refused.
package main

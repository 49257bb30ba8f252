// SPDX-License-Identifier: Apache-2.0

// Wherry-short is the program in front of wherry for commands that need little of it. It is never installed alone: make puts it into the
// same file as cmd/wherry, with a few instructions before both that choose (entry/entry.c, tools/elfjoin).
package main

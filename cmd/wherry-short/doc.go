// SPDX-License-Identifier: Apache-2.0

// Wherry-short is a small program that runs before wherry for commands that need little of it, and that is the resolver
// of names and the guard of a debug session, which run for long and are to take little. It is never installed on its
// own: make puts it in the same file as cmd/wherry, with a few instructions that choose between the two
// (entry/entry.c, tools/elfjoin).
package main

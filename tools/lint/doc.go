// SPDX-License-Identifier: Apache-2.0

// Command lint looks at the Go code of modules with the analyzers of go vet and of staticcheck, those that
// staticcheck.conf asks for, and prints what they find. It reads a module's own packages from source; of what they
// import, with a few packages of the standard library set apart, it knows the types that the compiler left for
// importers.
//
//	lint [FOLDER ...]
//
// Its law: other people's code is not looked into. go vet and staticcheck read the source of all dependencies, 2,600
// packages, to know which of their functions format, never return or change nothing, which costs a cold run 13 minutes
// of a processor (docs/decisions/082-lint-reads-what-is-ours.md). There is no way to make an exception in the code:
// what it says is mended, or its check is taken out of staticcheck.conf with a reason.
//
// The exit code is 1 when something was found, 2 when a module could not be read.
package main

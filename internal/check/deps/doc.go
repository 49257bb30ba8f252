// SPDX-License-Identifier: Apache-2.0

// Package deps reports what the wherry binary is made of: its modules with their packages, from the go command, and how
// many bytes of code each contributes, from the binary itself.
//
// A Module is one dependency; List asks for all of them, Sizes measures, Write renders docs/dependencies.txt. Its law:
// the list of packages is exact and reviewed when it changes; sizes are there to see where a binary grows, and differ
// from build to build.
package deps

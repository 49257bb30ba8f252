// SPDX-License-Identifier: Apache-2.0

// Command words writes the Go file in which the short program knows the commands that stand below the ones it sees to:
// after `wherry debug`, ls is a command and web is a pod. `go generate ./internal/cli/short` runs it. Its law: the
// words are those of the command tree, and a test compares them.
package main

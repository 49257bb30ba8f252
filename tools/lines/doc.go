// SPDX-License-Identifier: Apache-2.0

// Command lines breaks the lines of Go files that are longer than 120 columns, in place: `go run ./tools/lines
// FILE...`. What it does is in package internal/check/lines.
package main

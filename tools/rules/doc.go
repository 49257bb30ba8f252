// SPDX-License-Identifier: Apache-2.0

// Rules writes the tests columns of docs/behaviour.md and docs/attacks.md from the tests that name rules and attacks.
// `make generate` runs it at the root.
package main

// SPDX-License-Identifier: Apache-2.0

// Rules writes the tests column of docs/behaviour.md from the tests that name rules. `make generate` runs it at the root.
package main

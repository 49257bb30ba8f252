// SPDX-License-Identifier: Apache-2.0

// Package check holds the repository to its own rules: which packages may import what, that every package says what it
// is, that docs/behaviour.md, docs/attacks.md and docs/dependencies.txt are correct. It has tests only; each says what
// it forbids and why.
package check

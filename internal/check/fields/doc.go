// SPDX-License-Identifier: Apache-2.0

// Package fields makes the table of what becomes of each field of a pod: Page, for docs/fields.md.
//
// Pure.
//
// Its law: nothing in the table is written by hand. The fields are those of the Go types, and whether one is refused
// is what package podspec says of a pod that has it.
package fields

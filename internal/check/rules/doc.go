// SPDX-License-Identifier: Apache-2.0

// Package rules keeps docs/behaviour.md, the table of what the pod must do, and docs/attacks.md, the table of what was
// tried against it, in step with the tests that prove them.
//
// A Rule is one line of the page: id, what must hold, its layer (P: of the API or of planning, provable there), its
// status and the tests that name it. Parse reads the page, Scan finds the tests, Page.Update joins both, Page.Faults
// says where the page claims what no test proves. Its law: the tests column is never written by hand, and `works` never
// without a proof.
//
// An Attack is one line of the other page; ParseAttacks, ScanAttacks and AttackPage do the same for it.
package rules

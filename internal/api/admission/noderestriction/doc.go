// SPDX-License-Identifier: Apache-2.0

// Package noderestriction is the admission plug-in NodeRestriction: a node's agent writes only what is of its own node.
//
// A Plugin finds what a write is about (the node, its lease, its pods and their tokens, claims and certificates) and
// reads what has to be known of it. Package nodeauth decides.
//
// Its law: it only validates, since what it looks at is what would be stored. What it cannot read, it does not let
// pass.
package noderestriction

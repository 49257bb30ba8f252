// SPDX-License-Identifier: Apache-2.0

// Package nodelifecycle keeps pods off nodes that cannot take them: it taints nodes by their conditions, and notices
// when a node's agent no longer renews its lease.
//
// Wanted is the pure rule from a node to its taints; Controller is a loop over the names of nodes that applies it. The
// law: only taints of this package are ever touched, and a node's silence is measured by this process' own clock from
// the last renewal it saw, so that clocks may differ. Pods of silent nodes are left alone: with one machine there is
// nowhere to move them to, and its agent keeps running them.
package nodelifecycle

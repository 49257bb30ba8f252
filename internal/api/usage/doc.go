// SPDX-License-Identifier: Apache-2.0

// Package usage decides what metrics.k8s.io says: how much processor and memory nodes, pods and containers use.
//
// A Sample is what one node counted up to one time. Between makes a Rates of two of them, and Rates says what `kubectl top` shows.
// The law: everything here is computed from its arguments; a figure that was not counted is left out, never zero.
package usage

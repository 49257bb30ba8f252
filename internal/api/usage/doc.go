// SPDX-License-Identifier: Apache-2.0

// Package usage decides what metrics.k8s.io says: how much processor and memory nodes, pods and containers use.
//
// A Sample is what one node had counted at a point in time. Between derives Rates from two samples, and Rates says what
// `kubectl top` shows. The law: everything here is computed from its arguments; a figure that was not counted is left
// out, never zero.
//
// Pure.
package usage

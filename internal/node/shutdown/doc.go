// SPDX-License-Identifier: Apache-2.0

// Package shutdown decides in which order, and with how much time, pods end before their machine goes down (PL-32): by
// priority, the least first, as the kubelet's graceful node shutdown has it.
//
// [Periods] makes periods of the kubelet's two durations, [Parse] reads a list of them; [Groups] sorts pods into them.
//
// Its law: a pod is given no more than its period and no more than it asks for itself; the whole takes no longer than
// [Total].
//
// Pure.
package shutdown

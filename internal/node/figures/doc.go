// SPDX-License-Identifier: Apache-2.0

// Package figures asks the runtime what pods and containers use. A [Reader] never waits long for one of them: the figures of a pod whose
// shim does not answer are the last that were had, with their old time.
//
// Its law: one call a pod is under way at most, however many ask; who asks gets an answer within twice the patience (RS-05).
package figures

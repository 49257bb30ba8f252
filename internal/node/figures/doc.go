// SPDX-License-Identifier: Apache-2.0

// Package figures asks the runtime what pods and containers use. A [Reader] never waits long for one of them: the
// figures of a pod whose shim does not answer are the last known ones, with their original timestamp.
//
// Its law: at most one call per pod is in progress, however many callers ask, and every caller gets an answer within
// twice the patience (RS-05).
package figures

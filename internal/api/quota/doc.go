// SPDX-License-Identifier: Apache-2.0

// Package quota decides what objects take of a ResourceQuota: Usage says what one object takes, Matches which quotas it concerns,
// Count what all of them take together, Charge whether one more fits, Change whether one may become another.
//
// Its law: pure, and sidecars count as mains do (SC-16): a pod takes its effective requests and limits (SC-14). Pods that have
// ended take nothing but their place in count/pods.
package quota

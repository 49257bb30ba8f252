// SPDX-License-Identifier: Apache-2.0

// Package quota decides what objects use of a ResourceQuota: Usage says what one object uses, Matches which quotas
// apply to it, Count what all of them use together, Charge whether one more fits, Change whether one may be replaced by
// another.
//
// Its law: pure, and sidecars count like main containers (SC-16): a pod uses its effective requests and limits (SC-14).
// Pods that have ended use nothing but their place in count/pods, unless there are image execs in them.
//
// Pure.
package quota

// SPDX-License-Identifier: Apache-2.0

// Package limitrange decides what the LimitRanges of a namespace mean for a new pod: Apply sets what its containers
// leave unset, Check reports what is outside the limits.
//
// Its law: pure, and sidecars count (SC-16). A limit per container applies to main, init and sidecar containers, never
// to ephemeral containers; a limit per pod applies to the effective resources of SC-14, to which sidecars add and
// ordinary inits do not.
//
// Pure.
package limitrange

// SPDX-License-Identifier: Apache-2.0

// Package limitrange decides what the LimitRanges of a namespace mean for a new pod: Apply sets what its containers leave open,
// Check says what is outside the limits.
//
// Its law: pure, and sidecars count (SC-16). A limit per container holds for mains, inits and sidecars, never for ephemeral
// containers; a limit per pod holds for the effective resources of SC-14, to which sidecars add and ordinary inits do not.
package limitrange

// SPDX-License-Identifier: Apache-2.0

// Package bank decides from which NUMA nodes containers of guaranteed pods have their memory (PL-33): the kubelet's
// memory manager with its policy Static.
//
// Pure.
//
// A [Machine] says what each NUMA node can give, [Needs] what a container asks for; [Request.Offer] says on which nodes
// that could be had, and [Request.Choose] takes it from some.
//
// Its law: no more is given of a node than it has; a container that needs several nodes shares them only with such as
// have just the same ones; and what init containers have had their pod has again.
package bank

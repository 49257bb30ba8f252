// SPDX-License-Identifier: Apache-2.0

// Package numa decides on which NUMA nodes of the machine what a container asks for is brought together (PL-33): the
// kubelet's topology manager.
//
// Pure.
//
// A [Mask] is a set of NUMA nodes. Of each resource a [Stock] says on which sets of nodes it could be had ([Hint]); a
// [Rule] merges those of all resources ([Rule.Merge]) and says whether that will do ([Rule.Admits]).
//
// Its law: what is merged is a set that each resource has named, or a part that several have in common; it is preferred
// only where every resource prefers its own part; and among those as good the narrowest one is taken.
package numa

// SPDX-License-Identifier: Apache-2.0

// Package noderoutes has the pods of one machine and those of the other nodes reach one another: it follows the Node
// objects and has the pod network lead to the networks in their spec.podCIDRs by the addresses in their status.
//
// [Nodes] decides, from Node objects, which networks are where; it is pure. [Follower] has that done whenever it is
// another than before, and again while something of it cannot be done.
//
// The law: the objects alone say what is reached. As long as they are not known, what was reached before stays so.
package noderoutes

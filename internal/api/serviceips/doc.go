// SPDX-License-Identifier: Apache-2.0

// Package serviceips hands out the cluster IPs and the node ports of services.
//
// [Addresses] and [NodePorts] are those of one range; Attach has them taken and given back by the writes of a store.
//
// Its law: no two services have the same address or port. What is taken is known in memory alone, since the server is
// the only writer of its store, and is read from the stored services at start.
package serviceips

// SPDX-License-Identifier: Apache-2.0

// Package serviceips hands out the cluster IPs and the node ports of services.
//
// [Addresses] are those of all ranges, [NodePorts] those of one; Attach has them taken and given back by the writes of
// a store. Which ranges there are is told by the ServiceCIDR objects; what they mean, package ranges decides. Package
// keeper keeps the objects beside: an IPAddress for each address, what a ServiceCIDR says of itself.
//
// Its law: no two services have the same address or port. What is taken is known in memory alone, since the server is
// the only writer of its store, and is read from what is stored at start. Services are the truth, IPAddress objects
// follow: one that is missing or wrong loses nothing. A range that is being deleted gives no address from the moment in
// which that is stored.
package serviceips

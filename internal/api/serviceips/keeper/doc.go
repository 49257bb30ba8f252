// SPDX-License-Identifier: Apache-2.0

// Package keeper keeps the objects beside services' addresses: the IPAddress of each, and what ServiceCIDRs say of
// themselves.
//
// [Keeper] hears from package serviceips what has changed and makes the objects say so. An IPAddress is written by the
// one who writes the service, before the client has its answer; everything else, and what failed, is done by a
// goroutine that there is only while there is something to do: a server at rest has none, and no watch.
//
// Its law: services are the truth. What an object should be is asked anew before each write and after it, so whoever
// comes first, and wherever a server dies, the next look ends with the right object.
package keeper

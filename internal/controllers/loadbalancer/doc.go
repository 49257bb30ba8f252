// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer gives Services of type LoadBalancer their addresses: that of the machine, or with a range one of
// their own from it. The service proxy carries them; the controller only says in the status which they are.
//
// [New] makes the controller, which works in Run. What it decides, over all services at once, is [Assign].
//
// The laws: a service keeps the address that it has as long as it may have it, also across restarts, since the status
// is all that is remembered. No two services have the same address and port. A service that can have none says why in
// an event, and gets one when that changes. A service with an address, or that waits for one, carries [Finalizer],
// which goes with the address, also where no addresses are given any more: a server without a service proxy runs the
// controller without a pool. Services with a class belong to whoever implements that.
package loadbalancer

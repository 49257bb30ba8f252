// SPDX-License-Identifier: Apache-2.0

// Package servicenames keeps the server's resolver of names fed, and service kube-dns in being, by whose address pods
// ask it.
//
// [Ensure] makes the service and its endpoint slice, [Remove] takes them away, [Controller] sends the resolver
// services, endpoint slices and pods as they come, change and go. The laws: a service of that name that somebody else
// has made is left alone, and its address is what pods ask; the resolver gets a whole world only when all of it is
// known, so that no name is missing while a server starts.
package servicenames

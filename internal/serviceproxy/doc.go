// SPDX-License-Identifier: Apache-2.0

// Package serviceproxy carries Services on this node: it follows Services and EndpointSlices, has package decide say
// what the kernel should have, and package tables make it so.
//
// [Proxy] is made with New and works in Run until its context ends, which takes nothing away: services go on while
// nobody runs here. Where the configuration wants it, it answers as a kube-proxy does: /healthz and /livez for load
// balancers, /metrics and /proxyMode for those who watch.
//
// The laws: nothing in the kernel is touched before what Services and EndpointSlices there are is known, so nothing
// that is still wanted is ever missing, whenever the server was killed. What cannot be done is tried again from what
// the kernel says it has. A node without services costs one watch: EndpointSlices and the kernel's notices are followed
// from the first service on, and so is the node's own object, unless load balancers ask about it.
package serviceproxy

// SPDX-License-Identifier: Apache-2.0

// Package aggregation makes other API servers part of this one: who asks for a group and version that an APIService
// gives to a Service is answered by what stands behind that.
//
// An Aggregator keeps an APIService for every group and version of this server itself (they are Local), so that clients
// see who answers for what, and begins the rest with the first that names a Service: a route to it, its part of the
// documents (discovery, OpenAPI v2 and v3), and Kubernetes' own controllers of whether it is available.
//
// Its law: before the first such APIService nothing runs and nothing is kept; a group of this server itself is never
// given away, but for metrics.k8s.io, and a version of debug.wherry.dev that it does not serve; and what is behind a
// route learns who asks from this server's certificate alone.
package aggregation

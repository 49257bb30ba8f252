// SPDX-License-Identifier: Apache-2.0

// Package wire has the words of debugging on clusters: those of the aggregated API that clients say (group, resources,
// query parameters), and those between the API and the agents ([Session], [Evidence], [Stop]), which speak HTTP over
// mutual TLS.
//
// Its law: a word that was released keeps its meaning; agents and API may be of different versions while a cluster is
// upgraded. It imports nothing that takes a program time to start, for the short program and the agent use it.
//
// Pure.
package wire

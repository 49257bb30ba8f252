// SPDX-License-Identifier: Apache-2.0

// Package wire holds the words between the API server and a node's agent that Kubernetes' API of the kubelet does not
// have: paths, query parameters, a header. Both ends take them from here: [ImageExec] is a request for an image exec,
// [Route] a path.
//
// Its law: a word that has been released keeps its meaning, for the agent and the API server may be of different
// versions. A node that does not know a path answers 404; a parameter that it does not know it ignores.
//
// Pure.
package wire

// SPDX-License-Identifier: Apache-2.0

// Package cluster is the room of debugging on clusters whose nodes and API server are not Wherry's (DA-04 to DA-10).
//
//	wire      the words between the command line, the API and the agents
//	agent     one on each node: runs sessions beside the containers of its node, for the API alone, by a process of
//	          package sessionchild for each
//	debugapi  the aggregated API, debug.wherry.dev: who may do what with which pod, and where its agent is
//	manifest  what is installed in a cluster, from one source
//
// A request goes from the command line to kube-apiserver, which knows who asks, judges whether he may, in the pod's own
// namespace, and writes it down; from there to the API, which judges what the path does not show (the profile,
// the pod's own rights, what admission says), and from there to the agent of the pod's node.
//
// Its law: the pod is not changed. Nobody gets more than the roles that he has in the pod's namespace allow, an agent
// does what the API asks for and nothing else, and knows only the containers of its own node.
package cluster

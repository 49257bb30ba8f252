// SPDX-License-Identifier: Apache-2.0

// Package debugapi is the aggregated API debug.wherry.dev/v1alpha1, by which pods are debugged that run on nodes of any
// Kubernetes cluster: `wherry cluster api`.
//
//	options    what is asked for, as admission is shown it
//	rights     what one must be allowed for that
//	authority  the certificates of the API and of the agents
//
// [New] makes the [Server], [Server.Run] serves. kube-apiserver hands a request on to it, with who asks; nobody else is
// listened to. The pod is read, the rights are asked for in its namespace, admission has judged the options, and then
// the agent of the pod's node is asked for a session, whose streams go through byte by byte.
//
// Its law: who asks is known by kube-apiserver's certificate alone, so that whatever is done here is in its audit log
// (DA-05); a right that cannot be asked for is not there (DA-04); the pod is read anew for each request and never
// written (DA-06).
package debugapi

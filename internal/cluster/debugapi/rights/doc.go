// SPDX-License-Identifier: Apache-2.0

// Package rights decides what somebody must be allowed to debug a pod as he asks: [Needs] says which rights, each with
// why and which of the ClusterRoles that come with the API has it ([Need]).
//
// Its law: a right is asked for in the pod's own namespace, and nobody gets by debugging a pod what its namespace does
// not give him (DA-04, DA-05). What is not known is judged as the most that it may be.
//
// Pure.
package rights

// SPDX-License-Identifier: Apache-2.0

// Package nodenetwork tells nodes what they have to know of one another to route packets and to enforce network
// policies, and nothing else: a node may not read other nodes' pods, whose specs are full of what is none of its
// matters (decision 062).
//
// [Handler] serves three paths, which take the right to get them: [Path] says what the cluster is, as a [Cluster];
// [PodsPath] and [NodesPath] are lists and watches of Pods and Nodes as [SlimPod] and [SlimNode] leave them.
//
// The law: what is not copied field by field does not come out.
package nodenetwork

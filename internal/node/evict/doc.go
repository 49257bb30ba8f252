// SPDX-License-Identifier: Apache-2.0

// Package evict decides which pods a node has to end because a resource runs out (PL-13, EC-18).
//
// [Parse] reads the kubelet's threshold flags into [Threshold]s. [Judge] compares the measurements with them: which are
// met, for how long, and what the node's conditions are. [Choose] ranks pods and names the one to go; [OverLimit] names
// a pod that has more on disk than it was allowed; [Admit] turns new pods away while the node is under pressure.
// [Images] says which images may be removed to make room.
//
// The law: all of it is pure. Package node does the measuring, ends the pods and removes the images.
//
// See https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/.
//
// Pure.
package evict

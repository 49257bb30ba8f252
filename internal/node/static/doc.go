// SPDX-License-Identifier: Apache-2.0

// Package static decides about static pods: those that a node has from files of its own, or from a URL, and not from an
// API server (PL-12, PL-31).
//
// [Parse] makes pods of a manifest. [Next] decides which static pods begin and which end, from those that are wanted
// and those that are there. [MirrorOf] and [Mirror] say what the API server is to show of one.
//
// Its laws: a pod's UID follows from what its manifest says, where it came from and the node, so that the same manifest
// is the same pod after any restart, and another one is another pod. What would need an API server is refused. A
// manifest that cannot be read changes nothing.
//
// Pure.
package static

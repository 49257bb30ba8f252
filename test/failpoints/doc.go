// SPDX-License-Identifier: Apache-2.0

// Package failpoints lets a real server die, or fail, at each place where it changes something, while real pods live
// their lives.
//
// The server is built with a failpoint at every write and every call of the runtime, its own, containerd's and etcd's
// (tools/failpoints). A first life of a pod, from its creation by way of debugging to its deletion, is lived in peace
// and shows which places it passes. In the lives after it each place fails once: the server dies there and is started
// again, as often as there are places, or the change fails, or is said to have failed. At the end of each life what
// must always hold is checked: what was acknowledged is there, no container ran twice at once, the pod came to what it
// should be, its deletion ended, and nothing is left of it; and at the end of all, that a pod which was there all the
// while has not noticed (that it is there still, where the runtime's own changes failed), and that purge leaves
// nothing. Before that, first starts on new data folders die in the same way, and their purges.
//
// It takes $FAILPOINTS of time (40s; "all" of the places: `make failpoints`), and another portion of the places with
// each $FAILPOINTS_SEED, which it tells when it fails: with the same seed and time it tries the same faults in the same
// order. What has once found something is tried first, whatever the seed is (findings). $FAILPOINTS_ONLY, a regular
// expression for PLACE=WHAT, chooses faults by name.
package failpoints

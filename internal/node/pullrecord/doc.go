// SPDX-License-Identifier: Apache-2.0

// Package pullrecord decides which pods may use an image that is on the node already without asking its registry again
// (RS-12), as the kubelet does since Kubernetes 1.35 (KEP-2535, "Ensure secret pulled images").
//
// [Decide] is the decider: by a [Policy], and by what is known of the pulls of an image, it says whether a pod must
// show the registry its credentials. [Store] keeps what is known: a note before each pull, a record of who was let in
// after it, in files of the data folder.
//
// Its law: what is not known for certain leads to another pull, never to access. A pull that was cut off has left its
// note, so its image does not pass for one that an administrator put there.
package pullrecord

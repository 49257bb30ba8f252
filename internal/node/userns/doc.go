// SPDX-License-Identifier: Apache-2.0

// Package userns gives each pod with hostUsers: false a range of user and group IDs of its own (PL-24).
//
// Pool is the whole of it: Take gives a pod the range that it has, or one that no other pod has. Ranges have 65536 IDs
// and begin at a multiple of 65536, as the kubelet's. They lie in what /etc/subuid and /etc/subgid give the user
// kubelet or, where there is no such user, in all that these files give nobody.
//
// Its law: a range is a fact on the disk, a file in the pod's folder, before anything runs in it, and it is the pod's
// as long as that folder is there. Nothing else is remembered, so nothing can be lost with the agent. A file that
// cannot be read is that of a machine which lost power: nothing of such a pod runs, and it gets a range anew.
package userns

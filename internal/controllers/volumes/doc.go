// SPDX-License-Identifier: Apache-2.0

// Package volumes binds claims to persistent volumes, keeps both while they are in use, and has Kubernetes' controller
// of ephemeral volumes (WL-15, WL-17).
//
// Controllers are its rows. NextForClaim and NextForVolume decide, as Kubernetes' binder does, from one claim or volume
// and what it names; the binder carries out. Kubernetes' own binder and protections are not imported: they bring the
// kubelet's code along.
//
// Its law: a binding is made at the volume first, by an update that fails if anybody else changed it; all else follows
// from that and can be done again. Nothing here makes or removes data: provisioners do, which are other programs or
// package localvolumes.
package volumes

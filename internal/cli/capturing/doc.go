// SPDX-License-Identifier: Apache-2.0

// Package capturing is wherry capture: it gathers what is needed to look at a pod, or a container of this machine,
// later and elsewhere, into a bundle (DA-12), and shows one. [New] is the command.
//
// Its law: it changes nothing of what it looks at; each thing that cannot be had is named in the bundle and hinders no
// other; and nothing that a pod gets from a Secret is in it unless that was asked for.
package capturing

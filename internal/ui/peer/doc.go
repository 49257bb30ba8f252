// SPDX-License-Identifier: Apache-2.0

// Package peer tells whose program is at the other end of a connection on loopback. [Listener] accepts those of some
// users only; [Owner] reads the owner of a socket from the kernel's table of them.
//
// Its law: a connection whose owner is not known is refused. On loopback every user of the machine can connect, and see
// other users' command lines, in which a browser's start has the link that signs in: who connects is what the kernel
// says.
package peer

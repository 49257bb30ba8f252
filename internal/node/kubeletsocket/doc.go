// SPDX-License-Identifier: Apache-2.0

// Package kubeletsocket opens the sockets at which programs on the node look for its kubelet: device plug-ins to
// register, monitoring to ask who has which device. [Watch] finds the sockets at which programs wait for a kubelet, as
// CSI drivers do, and [Connect] talks to them.
//
// Its law: a socket that somebody serves is left alone ([ErrOccupied]); one that nobody serves is what a process that
// was killed has left, and is replaced; the sockets of programs that had registered with that are removed, too, as
// those programs expect of a kubelet that starts.
package kubeletsocket

// SPDX-License-Identifier: Apache-2.0

// Package place decides, when a pod comes, which CPUs, devices and memory its containers have, so that they are near to
// one another (PL-33).
//
// Pure.
//
// A [Node] says what there is and by which rules it is given; [Node.Place] makes a [Placement] of a pod, or says why
// the pod is not let in ([Refused]).
//
// Its law: containers are looked at in the order of the spec, each beside those that live when it does; either all of a
// pod is placed, or nothing.
package place

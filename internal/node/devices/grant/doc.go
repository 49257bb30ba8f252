// SPDX-License-Identifier: Apache-2.0

// Package grant decides which devices of a resource a container gets (PL-34).
//
// Pure.
//
// A [Request] is what is known when the container asks; [Look] says what there is to choose from, and [Offer.Choose]
// chooses, by what the device plug-in prefers where it has answered.
//
// Its law: a device is never in two living containers, but for one that an init container of the same pod has had: the
// containers after it get the same one. A container that has devices keeps them as long as its pod lives.
package grant

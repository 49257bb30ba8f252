// SPDX-License-Identifier: Apache-2.0

// Package pull gets images from registries into the embedded containerd, in place of the CRI plug-in's own call, which
// does it by the same containerd client. What is different:
//
//   - An image of which all is there costs one question to its registry and no write.
//   - What a pull has brought when it fails is kept for an hour by a lease, so that the next one goes on from there, in
//     the middle of a layer too.
//   - Each pull has connections of its own. The plug-in has three for all pulls, and a registry that hangs on three
//     layers would hold up all others.
//
// [Puller] is the main type. Two pulls of one image by the same name are never at work at the same time.
package pull

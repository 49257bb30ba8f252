// SPDX-License-Identifier: Apache-2.0

// Package image gets the image that a debugger runs from, without a container engine's help: [Image.Unpack] writes its
// files into a folder, out of an archive or from its registry, and says what runs from it.
//
// Its law: an image is outside input. Nothing of it leads out of the folder, and no credential is used that the caller
// has not given. Where it has bounds, they hold for what is written and kept, not for what is read.
package image

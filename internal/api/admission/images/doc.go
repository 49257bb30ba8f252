// SPDX-License-Identifier: Apache-2.0

// Package images is the admission plug-in that holds the images of pods to the image policies of their namespace.
//
// A Plugin has the policies: those that are stored, and those of the configuration file, which nobody can change
// through the API. Package imagepolicy decides about one image. An image that is called by its id is judged by the
// names that it has at the nodes, which are asked for them.
//
// Its law: every way by which an image gets into a pod passes here. Where policies or names cannot be read, no image
// that they concern gets in.
package images

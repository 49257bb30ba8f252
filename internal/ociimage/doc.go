// SPDX-License-Identifier: Apache-2.0

// Package ociimage makes small container images out of single files, without a container engine, a registry or a
// base image: the pause image, the examples' and the tests'.
//
// [Build] turns a [Spec] into an image, [WriteTar] writes images as an OCI archive that `wherry image import`,
// containerd and docker load. Its law: the same Spec gives the same bytes, so hashes show whether anything changed.
//
// Pure.
package ociimage

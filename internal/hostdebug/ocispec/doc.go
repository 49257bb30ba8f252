// SPDX-License-Identifier: Apache-2.0

// Package ocispec decides what a debugger on this machine may do and see, as an OCI runtime specification (DA-04): its
// namespaces are the target's, its capabilities those of a profile, its root filesystem the toolbox or an image, the
// target's files are at /c.
//
// Its law: a profile's words mean the same as in a pod (DC-14), and nothing is given that the caller does not have.
//
// Pure.
package ocispec

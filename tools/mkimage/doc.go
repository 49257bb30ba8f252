// SPDX-License-Identifier: Apache-2.0

// Mkimage writes a container image archive from single files: the command line of package ociimage, for Makefiles.
package main

// SPDX-License-Identifier: Apache-2.0

// Command clusterimage writes programs of several architectures as one image, into an OCI layout and the tar archive of
// that: what make images leaves in dist.
package main

// SPDX-License-Identifier: Apache-2.0

// Package images makes the container images that the end-to-end tests run, without a registry or a container engine:
// [Tool], a scratch image with one static Go program (folder tool) that misbehaves in all the ways tests ask for, and
// [Busybox], Debian's static busybox with its applets, for tests that want a shell, tar or id.
//
// Both are small and are the same bytes for the same inputs, so they can be imported into any number of servers and
// pushed to registries.
package images

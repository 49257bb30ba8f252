// SPDX-License-Identifier: Apache-2.0

// Package csitest is a CSI driver for tests: [Driver] serves its sockets in this process, mounts nothing, and remembers
// what it was asked for.
package csitest

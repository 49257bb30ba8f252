// SPDX-License-Identifier: Apache-2.0

// Package devicetest is a device plug-in for tests, on the real protocol: a [Plugin] serves its socket, registers, and
// gives whatever its test says.
//
// The law: it remembers every call, so that a test can say what the node must not have asked twice.
package devicetest

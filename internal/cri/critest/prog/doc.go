// SPDX-License-Identifier: Apache-2.0

// Command prog does what the script in its arguments says (see critest/script). Built statically it is the only file of
// the image on which the conformance suite runs against a real runtime.
package main

// SPDX-License-Identifier: Apache-2.0

// Box is the one program in the tests' images.
package main

// SPDX-License-Identifier: Apache-2.0

// Command lines prints numbered lines, 100 at a time, until it is told to stop; then it says how many there were.
package main

// SPDX-License-Identifier: Apache-2.0

// Command lines prints numbered lines, 100 at a time, until a signal stops it; then it prints how many there were.
package main

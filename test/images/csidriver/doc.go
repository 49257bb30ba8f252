// SPDX-License-Identifier: Apache-2.0

// Command csidriver is a CSI driver for tests, run in a pod as vendors' are: it registers itself, keeps volumes as
// folders below /volumes, or as files behind loop devices where a pod wants a device, and prints a line for each call.
package main

// SPDX-License-Identifier: Apache-2.0

// Command deviceplugin is a device plug-in for tests, run in a pod as vendors' are: it makes devices of the given names
// out of /dev/null and registers them, again whenever the node's socket is made anew.
package main

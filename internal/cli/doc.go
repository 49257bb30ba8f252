// SPDX-License-Identifier: Apache-2.0

// Package cli is wherry's command line: one file per command, each a thin layer of flags over the package that does the
// work (server, podrun, hostapi, kubectl's own).
//
// Main runs a command line and returns its exit code. A command returns an error or an Exit with a code of its own;
// Main prints errors once, on standard error, as one message. Its law: habits are kubectl's (flag names, -o, -n, --kubeconfig),
// output meant for programs goes to standard output and everything else to standard error, and colour is for terminals
// only.
package cli

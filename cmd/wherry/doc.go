// SPDX-License-Identifier: Apache-2.0

// Command wherry gives one Linux machine the Kubernetes pod. Under the name kubectl it is kubectl. It parses nothing
// itself: package cli picks the program by the name under which it was called and the subcommand.
package main

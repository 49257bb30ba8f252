// SPDX-License-Identifier: Apache-2.0

// Command man writes a manual page for each command of wherry into a folder, from what --help says. Its law: the pages
// say nothing of their own, so that nobody has to keep them.
package main

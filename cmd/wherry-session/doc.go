// SPDX-License-Identifier: Apache-2.0

// Wherry-session is the process that an agent of a cluster starts for each debug session (package sessionchild),
// without the rest of wherry, which takes a tenth of a second to start. It is never installed on its own: wherry
// carries it among the helper programs, and an agent has it ready with the other tools (package kit), which it does not
// carry.
package main

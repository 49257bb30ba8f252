// SPDX-License-Identifier: Apache-2.0

// Wakers counts what wakes a process that has nothing to do: timers and sockets, each by the function that waits for
// it. It reads a trace as go tool trace prints it:
//
//	wherry kubectl get --raw '/debug/pprof/trace?seconds=10' > trace # of a server with --profiling
//	go tool trace -d=parsed trace | go run ./tools/wakers
package main

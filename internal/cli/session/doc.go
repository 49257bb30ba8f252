// SPDX-License-Identifier: Apache-2.0

// Package session carries a terminal, or pipes, over one streaming request of the API: exec, attach, debug, image exec.
// A [Request] says where and what; Run returns the command's exit code. A server's refusal is a [Refusal]. It speaks
// WebSocket with Kubernetes' protocol v5.channel.k8s.io (KEP-4006); a [Dial] makes the connection.
//
// Its law: the user's terminal is restored afterwards, whatever happened; a request that was refused is not made again
// by other means; and a connection that ended before the server reported the command's exit is never treated as
// success. It imports nothing that takes a program time to start.
package session

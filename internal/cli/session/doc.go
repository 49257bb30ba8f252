// SPDX-License-Identifier: Apache-2.0

// Package session carries a terminal, or pipes, over one streaming request of the API: exec, attach, debug, image exec. A
// [Request] says where and what; Run returns the command's exit code. A server that says no is a [Refusal]. It speaks WebSocket as
// Kubernetes' v5.channel.k8s.io has it (KEP-4006); a [Dial] makes the connection.
//
// Its law: what the user's terminal was it is again afterwards, whatever happened; a request that was refused is not made again by
// other means; and a connection that ended before the server said how the command did is never taken for success. It imports
// nothing that takes a program time to start.
package session

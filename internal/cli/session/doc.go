// SPDX-License-Identifier: Apache-2.0

// Package session carries a terminal, or pipes, over one streaming request of the API: exec, attach, debug, image exec. A
// [Request] says where and what; Run returns the command's exit code.
//
// Its law: what the user's terminal was it is again afterwards, whatever happened; and a request that was refused is not made
// again by other means.
package session

// SPDX-License-Identifier: Apache-2.0

// Package socket makes and finds the host API's unix socket, also where its path is longer than a socket's address can
// be.
//
// Its law: it imports nothing that takes a program time to start: short commands ask on this socket too.
package socket

// SPDX-License-Identifier: Apache-2.0

// Package datadir says where a server's data folder is, and where in it others look.
//
// Its law: it is pure, and imports nothing that takes a program time to start: the client of a short command needs it
// too.
//
// Pure.
package datadir

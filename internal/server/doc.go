// SPDX-License-Identifier: Apache-2.0

// Package server composes wherry's parts into one running program.
//
// Options say what is wanted; New checks them; Server.Run starts the components of one visible list (list.go), each as
// soon as those it names in `after` are up, serves until its context ends, and stops them in the reverse of the list.
// Stopping the server leaves pods running: the next server on the same data folder takes them up again. A Refusal is a
// start that cannot be, with the reason, the way out and an exit code of its own.
//
// Its law: this package wires and decides nothing about pods. What a component is and needs can be read in list.go
// alone.
package server

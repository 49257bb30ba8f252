// SPDX-License-Identifier: Apache-2.0

// Package enginesocket reaches container engines of this machine by their sockets. A [Place] says where an engine may
// listen, and [Place.Find] which of that is meant; [Docker] asks what speaks Docker's Engine API.
//
// Its law: a socket that was asked for, by a flag or a variable, is tried alone, and only one of this machine. What
// goes wrong is reported in words for the person who typed the command.
package enginesocket

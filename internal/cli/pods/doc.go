// SPDX-License-Identifier: Apache-2.0

// Package pods has the commands that look into a pod: debug, with its list, history and stop, exec and cp. They are
// flags and words; the ways into a pod are decided in package ways, sessions are those of package reach.
//
// Its law: a command never adds a debug container where the user asked for one that is there, and the exit code of a
// command in a pod is the program's.
package pods

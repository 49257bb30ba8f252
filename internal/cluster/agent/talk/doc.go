// SPDX-License-Identifier: Apache-2.0

// Package talk has the words between an agent and the process that runs one session for it: an [Ask] goes in by one
// pipe, each [Report] comes back by another as a line of JSON.
//
// Its law: both are of the same program, so words may change. It imports nothing that takes a program time to start.
//
// Pure.
package talk

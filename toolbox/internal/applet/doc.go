// SPDX-License-Identifier: Apache-2.0

// Package applet is what the commands of the toolbox have in common: their table entry ([Applet]), one run of one
// ([Call]: arguments, flags, streams) and how a run ends ([Fail], [Exit], [Usage]).
//
// Its law: every command has --help; an unknown flag or a wrong number of arguments ends with 2 and does nothing; a
// command that goes on after a failure ([Call.Warn]) still ends with 1; output that could not be written is a failure.
package applet

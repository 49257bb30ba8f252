// SPDX-License-Identifier: Apache-2.0

// Package plain keeps text written by others (containers, object names, messages from servers) from acting on the
// user's terminal: what a terminal would obey is shown in visible form instead, an escape character as \x1b.
//
// A [Filter] decides, [Text] and [Coloured] apply one to a whole text, a [Writer] to a stream, however it is cut into
// pieces. The commands' streams are Writers from the start (package cli installs them in New), so that a command has to
// ask for anything else: [Own] for what wherry draws itself and for sessions with a terminal of their own, [Output] for
// what a container has written.
//
// Its law: a Filter never emits a control character except newline and tab, nor any that changes the direction of text,
// and its output is valid UTF-8. With colours, complete SGR sequences pass and are reset at the end of each line. It
// imports nothing that takes a program time to start.
package plain

// SPDX-License-Identifier: Apache-2.0

// Package evidence has the words in which a debugger is shown what a container has left: its environment as a file
// ([EnvText]), the end of its log without what the CRI's format adds ([CRILogEnd], [CRILogText]), the signal that an
// exit code stands for ([Signal]), and its state as text ([JSON]). Image exec on a node and debugging on any machine
// show it alike.
//
// Its law: what is read comes from containers and is never trusted: nonsense is left out, and all is bounded.
package evidence

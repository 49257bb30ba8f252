// SPDX-License-Identifier: Apache-2.0

// Package reach is how commands reach an API server: Flags say which one, a Client is a connection to it, and Stream
// carries a session with a process in a pod. Where nobody answers, an Away says so in one sentence, with what to do.
//
// Its law: a kubeconfig that the user names must be there; none is made up, and no other is tried in its place. What
// kubectl's libraries would say about a server that does not answer is never shown as it is.
package reach

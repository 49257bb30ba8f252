// SPDX-License-Identifier: Apache-2.0

// Package pulling shows how far a node's pulls are. [Transfers] adds up what is being fetched and words it; [Follow]
// shows that again and again; [Wait] does so for a session that waits for an image: the pod's events say that there is
// a pull, the host API says, to those who may ask it, how much of it has arrived.
//
// Its laws: it only shows. Whoever cannot be asked is not asked again, and is no error. And it imports nothing that
// takes a program time to start: `wherry exec` and `wherry debug` begin in the short program.
package pulling

// SPDX-License-Identifier: Apache-2.0

// Package asked remembers which pod asked for which name, and what the answer was (WL-14): the last [Most] questions of
// each pod, of at most [Pods] pods.
//
// [Asked] is one question with its answer, [Book] what is remembered. It costs an entry in a ring to note one; words
// are only made when somebody wants to read them.
//
// Pure.
package asked

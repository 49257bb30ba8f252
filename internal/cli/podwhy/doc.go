// SPDX-License-Identifier: Apache-2.0

// Package podwhy is the command `wherry why`: it has the facts about a pod gathered (package gather) and made an answer
// of (package why), and prints it.
//
// Its law: it changes nothing, and what it prints of others' words is on lines of its own making.
package podwhy

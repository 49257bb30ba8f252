// SPDX-License-Identifier: Apache-2.0

// Package podwhy is the command `wherry why`: it gathers the facts about a pod from an API server of any make, has
// package why make an answer of them, and prints it.
//
// Its law: it changes nothing, and it needs no right but to get pods. What it may not look at, or cannot find out, it
// says with the right that is missing, and goes on. Of Secrets it takes the names of their keys and never a value.
package podwhy

// SPDX-License-Identifier: Apache-2.0

// Package engines asks the container engines of this machine, and its process table, what only they know of a target:
// [Find] gives a [Container], its process or how it ended, its environment, and where the files of one that has ended
// are; [List] gives all that can be debugged.
//
// Its law: it only asks. An engine that is not here is an error which says where it was looked for; what an engine
// answers is outside input.
package engines

// SPDX-License-Identifier: Apache-2.0

// Package why says what is wrong with a pod, in plain words, and what to try.
//
// [Facts] is what could be learned of a pod: the pod, its events, the nodes, the objects that it refers to, the ends of
// its logs, the names that it has asked for. [Explain] makes an [Answer] of them: [Finding]s in the order of their
// cause, each with the facts that it rests on and where each fact is from. [Logs], [References] and their like say
// which facts are needed for a pod. What concerns a single container, whichever engine runs it, is in functions over
// small structs that know no pod: [Box.End], [Box.Start], [ReadLog].
//
// Its law: it is pure, and it says nothing that no fact says. Facts may be missing, old, or written by somebody who
// means harm: an answer comes out of whatever they are, and nothing in it is longer than a line or controls a terminal.
//
// Pure.
package why

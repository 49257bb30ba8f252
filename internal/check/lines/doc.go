// SPDX-License-Identifier: Apache-2.0

// Package lines breaks the lines of Go files that are longer than 120 columns, as a person would who fills them:
// comments by paragraphs, code after a comma or an operator, as far out of brackets and as far to the right as there is
// one.
//
// Its law: the program stays the same. What [Broken] returns has the same tokens in the same order and the same words
// in comments. A string that is too long stays: only a person can say where it is to be cut.
//
// Pure.
package lines

// SPDX-License-Identifier: Apache-2.0

package oneline

import (
	"strings"
	"unicode"
)

// Of is a text on one line: white space, and what cannot be printed, is one space.
func Of(text string) string {
	return strings.Join(strings.FieldsFunc(text,
		func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// Cut is Of, with at most that many characters; what was left out is shown by an ellipsis.
func Cut(text string, most int) string {
	line := []rune(Of(text))
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}

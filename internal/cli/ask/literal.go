// SPDX-License-Identifier: Apache-2.0

package ask

import "strings"

// Literal keeps Kubernetes from reading $(NAME) and $$ in a text of a pod's spec: on a command line they are the
// shell's. The container gets the text as it is here.
func Literal(text string) string {
	if strings.Contains(text, "$(") || strings.Contains(text, "$$") {
		return strings.ReplaceAll(text, "$", "$$")
	}
	return text
}

// Plain is the reverse, for people to read: a text of a pod's spec as its container gets it. References to variables
// stay.
func Plain(text string) string { return strings.ReplaceAll(text, "$$", "$") }

func each(words []string, change func(string) string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = change(w)
	}
	return out
}

// PlainWords is [Plain] of a command's words.
func PlainWords(words ...string) []string { return each(words, Plain) }

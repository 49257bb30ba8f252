// SPDX-License-Identifier: Apache-2.0

package exitcode

import "strings"

// Exit codes of a command that could not be run.
const (
	CannotRun = 126
	NotFound  = 127
)

// Of is the exit code that stands for a runtime's words about a command it could not start; 0 if they are about
// something else.
func Of(words string) int {
	for _, k := range []struct {
		words string
		code  int
	}{
		{"executable file not found", NotFound}, {"no such file or directory", NotFound},
		{"permission denied", CannotRun}, {"exec format error", CannotRun}, {"is a directory", CannotRun},
	} {
		if strings.Contains(words, k.words) {
			return k.code
		}
	}
	return 0
}

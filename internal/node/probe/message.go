// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"strings"
	"unicode/utf8"
)

// maxMessage bounds what is kept of a command's output or an HTTP body: 10 KiB, as the kubelet does.
const maxMessage = 10 << 10

// Cut makes a container's output fit for a message of the API: at most 10 KiB, and valid UTF-8 (protobuf refuses any
// other).
func Cut(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage]
		// Half a character at the end is our own cut, not the container's fault.
		for i := 1; i <= utf8.UTFMax && i <= len(s); i++ {
			if utf8.RuneStart(s[len(s)-i]) {
				if !utf8.FullRuneInString(s[len(s)-i:]) {
					s = s[:len(s)-i]
				}
				break
			}
		}
	}
	return strings.ToValidUTF8(s, "?") // no longer than the bytes it stands for
}

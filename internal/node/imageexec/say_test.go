// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"bytes"
	"testing"
)

// RS-13: a note has paths that the pod's author chose, and shares a stream with the command that may end at a terminal.
func TestNotesArePlain(t *testing.T) {
	const note = "container main: /data\x1b]0;PWNED\a is not shown"
	for want, tty := range map[string]bool{
		"wherry: container main: /data ]0;PWNED is not shown\n":   false,
		"wherry: container main: /data ]0;PWNED is not shown\r\n": true,
	} {
		var b bytes.Buffer
		streams := Streams{Stderr: &b}
		if tty {
			streams = Streams{Stdout: &b, TTY: true}
		}
		say(streams, note)
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package exitcode

import (
	"strings"
	"testing"
)

// FuzzPlain cuts what runtimes say.
func FuzzPlain(f *testing.F) {
	f.Add(`rpc error: code = Unknown desc = failed to exec in container: failed to start exec "a": OCI runtime exec failed: exec failed: unable to start container process: exec: "ls": executable file not found in $PATH: unknown`)
	f.Add(`failed to start exec "": failed to start exec "`)
	f.Add(`exec: "x": stat x: no such file or directory: unknown`)
	f.Fuzz(func(t *testing.T, words string) {
		if out := Plain(words); !strings.Contains(words, out) || out == "" && strings.TrimSuffix(words, ": unknown") != "" && !strings.HasSuffix(strings.TrimSuffix(words, ": unknown"), "process: ") {
			t.Errorf("%q becomes %q", words, out)
		}
		if code := Of(words); code < 0 || code > 255 {
			t.Errorf("%q: exit code %d", words, code)
		}
	})
}

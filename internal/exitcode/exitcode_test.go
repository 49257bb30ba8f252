// SPDX-License-Identifier: Apache-2.0

package exitcode

import "testing"

// DC-03: what the runtime says of a command becomes the code that a shell would give.
func TestOf(t *testing.T) {
	for words, want := range map[string]int{
		`exec: "x": executable file not found in $PATH`:            NotFound,
		`exec: "/x": stat /x: no such file or directory`:           NotFound,
		`exec: "/etc/passwd": permission denied`:                   CannotRun,
		`exec /script: exec format error`:                          CannotRun,
		`exec: "/etc": is a directory`:                             CannotRun,
		`failed to create shim task: cgroup: memory limit too low`: 0,
		"": 0,
	} {
		if got := Of(words); got != want {
			t.Errorf("%q: %d, want %d", words, got, want)
		}
	}
}

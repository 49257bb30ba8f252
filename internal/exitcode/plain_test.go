// SPDX-License-Identifier: Apache-2.0

package exitcode

import "testing"

// DC-03: what the runtime says of a command is told without the names of the programs that the word came through.
func TestPlain(t *testing.T) {
	const want = `exec: "ls": executable file not found in $PATH`
	for words, want := range map[string]string{
		`Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "8b7f": OCI runtime exec failed: exec failed: unable to start container process: exec: "ls": executable file not found in $PATH: unknown`: want,
		`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "ls": executable file not found in $PATH: unknown`:                      want,
		`failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: cgroup: memory limit too low: unknown`:                                                                                                        "cgroup: memory limit too low",
		`failed to start containerd task "405260": OCI runtime create failed: runc run failed: unable to start container process: error during container init: exec: "ls": executable file not found in $PATH`:                                                      want,
		`failed to start containerd task "405260": OCI runtime create failed: runc run failed: cgroup: memory limit too low`:                                                                                                                                        "cgroup: memory limit too low",
		`rpc error: code = FailedPrecondition desc = container is in CONTAINER_EXITED state`:                                                                                                                                                                        "container is in CONTAINER_EXITED state",
		`failed to start exec "`: `failed to start exec "`,
		"rpc error: code = ":     "rpc error: code = ",
		"the session failed":     "the session failed",
		"exec failed: ":          "exec failed: ",
		"":                       "",
	} {
		if got := Plain(words); got != want {
			t.Errorf("%q\n got %q\nwant %q", words, got, want)
		}
	}
}

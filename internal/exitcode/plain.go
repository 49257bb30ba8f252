// SPDX-License-Identifier: Apache-2.0

package exitcode

import "strings"

// Plain is what a container runtime says of a command that it could not start, without the names of the programs that
// the word came through: `exec: "ls": executable file not found in $PATH`. Words about anything else stay as they are,
// but for what all words of a runtime begin with.
func Plain(words string) string {
	const start = "unable to start container process: "
	if i := strings.LastIndex(words, start); i >= 0 {
		words = words[i+len(start):]
	}
	for {
		rest := cutOne(words)
		if rest == words {
			return strings.TrimSuffix(words, ": unknown")
		}
		words = rest
	}
}

// cutOne takes the first prefix away that says nothing to the user.
func cutOne(words string) string {
	for _, prefix := range []string{
		"Internal error occurred: ", "error executing command in container: ", "failed to exec in container: ",
		"error during container init: ", "failed to create containerd task: ", "failed to create shim task: ",
		"failed to load task: ", "OCI runtime exec failed: ", "OCI runtime create failed: ",
		"OCI runtime start failed: ", "exec failed: ", "runc create failed: ", "runc run failed: ",
	} {
		if rest, ok := strings.CutPrefix(words, prefix); ok && rest != "" {
			return rest
		}
	}
	// with an id, or a code, before the rest
	for _, begins := range []string{
		`failed to start exec "`, `failed to start containerd task "`, "rpc error: code = ",
	} {
		rest, ok := strings.CutPrefix(words, begins)
		if !ok {
			continue
		}
		end := `": `
		if begins[0] == 'r' {
			end = "desc = "
		}
		if _, rest, ok = strings.Cut(rest, end); ok && rest != "" {
			return rest
		}
	}
	return words
}

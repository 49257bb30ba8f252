// SPDX-License-Identifier: Apache-2.0

package userns

import (
	"os"
	"path/filepath"
)

// Closed names the folder on the way to path, or path itself, that users other than its owner cannot pass through; ""
// for none. Root of a pod with users of its own is such a user: it cannot make a container whose files lie there.
func Closed(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	closed := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o001 == 0 {
			closed = at // the outermost is reported: others below it come after
		}
		if at == filepath.Dir(at) {
			return closed
		}
	}
}

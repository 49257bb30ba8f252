// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"io/fs"
	"strings"
	"testing"
)

// No message about a CA that cannot be read advises to remove any of it; who may not read it is told to use sudo.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "ca.crt", Err: fs.ErrPermission}, "run the command with sudo"},
		{&fs.PathError{Op: "open", Path: "ca.key", Err: fs.ErrPermission}, "run the command with sudo"},
		{&fs.PathError{Op: "open", Path: "ca.key", Err: fs.ErrNotExist}, "put the file back from a backup"},
	} {
		got := unreadable("pki", c.err).Error()
		if !strings.Contains(got, c.want) || !strings.Contains(got, c.err.Error()) || strings.Contains(got, "remove") {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

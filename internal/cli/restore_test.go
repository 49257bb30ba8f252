// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/server"
)

// A volume that stays as it is is named, with what brings the backup's: by then there is a store to replace.
func TestRestoreTellsWhatStays(t *testing.T) {
	var errs strings.Builder
	printRestored(Terminal{Out: io.Discard, Err: &errs}, server.RestoreOptions{DataDir: "/d"},
		server.Restored{Volumes: 2, Stayed: []string{"/d/volumes/pvc-1"}, Kept: []string{"/d/etcd.before-x"}})
	for _, want := range []string{"volumes restored: 2\n", "/d/etcd.before-x (remove it when all is well)",
		"/d/volumes/pvc-1 is here already and stays as it is; to have the backup's, move it away and restore again with --force\n"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("it did not say %q:\n%s", want, errs.String())
		}
	}
}

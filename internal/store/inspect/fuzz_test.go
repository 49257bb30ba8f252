// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLog looks at a store's log that is damaged (RS-07): the look ends, with words about what is wrong.
func FuzzLog(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 512))
	f.Add([]byte("\x04\x00\x00\x00\x00\x00\x00\x84\x08\x04\x10\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.MkdirAll(logDir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(logDir(dir), "0000000000000000-0000000000000000.wal"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		l := lookAtLog(dir)
		if l.Files != 1 || len(data) == 0 && l.Empty == "" {
			t.Errorf("%+v", l)
		}
		_ = Judge(Facts{Dir: dir, Log: l})
	})
}

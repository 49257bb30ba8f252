// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wherryproject/wherry/internal/pki"
)

// RS-07: what a killed server had begun to write goes at the next start, and nothing else does.
func TestUnfinishedFilesGo(t *testing.T) {
	dir := t.TempDir()
	stays := []string{"version", "kubeconfig", ".mine", ".note.d", "pki/ca.key", "pki/.1", "bin/.unpacked", "bin/runc"}
	goes := []string{".version.123", ".kubeconfig.4000000001", "pki/.ca.key-77", "bin/.runc-1"}
	for _, d := range []string{"pki", "bin", ".folder.7"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(goes, stays...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweepUnfinished(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(stays, ".folder.7") {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range goes {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", name, err)
		}
	}
	if err := sweepUnfinished(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// RS-07: the names by which unfinished files are found are those that are written.
func TestUnfinishedNames(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full") // a folder in the file's place: it is written, and cannot be put there
	if err := os.MkdirAll(filepath.Join(full, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func() error{
		"server": func() error { return writeFile(full, nil, 0o600) },
		"pki":    func() error { return pki.WriteFile(full, nil, 0o600) },
	} {
		var link *os.LinkError
		if err := write(); !errors.As(err, &link) {
			t.Errorf("%s: %v", name, err)
		} else if base := filepath.Base(link.Old); !unfinished.MatchString(base) {
			t.Errorf("%s writes %s, which would not be found", name, base)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package logind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestForget proves PL-32: what was written to raise logind's limit goes with the server that it was written for, and nobody else's does.
func TestForget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logind.conf.d", "99-wherry.conf")
	if err := forget(file, "/srv/a"); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if err := write(file, "/srv/a", 90*time.Second+1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasSuffix(string(text), "\n[Login]\nInhibitDelayMaxSec=91\n") {
		t.Errorf("%q, %v", text, err)
	}
	for _, c := range []struct {
		text, folder string
		stays        bool
	}{
		{string(text), "/srv", true}, {string(text), "/srv/ab", true}, {string(text), "/srv/a", false},
		{"# Mine\n[Login]\n", "/srv/a", true}, {"", "/srv/a", true},
		{"# Written by wherry: the machine's going down waits until pods have ended.\n[Login]\n", "/srv/a", false},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := forget(file, c.folder)
		_, gone := os.Stat(file)
		if err != nil || errors.Is(gone, os.ErrNotExist) == c.stays {
			t.Errorf("%q, folder %s: %v, %v", c.text, c.folder, err, gone)
		}
	}
}

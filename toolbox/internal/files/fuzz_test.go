// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzModes reads modes of files, sizes and times.
func FuzzModes(f *testing.F) {
	for _, s := range []string{"0755", "u+rwX,go-w", "a=", "+t", "u=g", "@1.5", "2026-01-02 15:04", "9999999T", "4K", "@1e300", "@nan"} {
		f.Add(s, uint32(0o644), true)
	}
	f.Fuzz(func(t *testing.T, text string, old uint32, dir bool) {
		if change, err := ParseMode(text, 0o22); err == nil {
			if mode := change(old&0o7777, dir); mode > 0o7777 {
				t.Errorf("%q makes %o of %o", text, mode, old&0o7777)
			}
		}
		if n, err := ParseSize(text); err == nil && n < 0 {
			t.Errorf("%q is the size %d", text, n)
		}
		_, _ = ParseTime(text) // any error is fine
	})
}

// FuzzELF looks at programs, which may be anything.
func FuzzELF(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x38\x00\x01\x00\x40\x00\x00\x00\x00\x00" +
		"\x03\x00\x00\x00\x04\x00\x00\x00\x78\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x08\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00/lib/ld\x00"))
	f.Add([]byte("#!/bin/sh\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if word, err := elfWord(file); err != nil || word == "" {
			t.Errorf("%q, %v", word, err)
		}
	})
}

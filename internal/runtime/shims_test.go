// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PL-10: a shim is needed while it serves a bundle: its own, or one in its sandbox.
func TestNeededShims(t *testing.T) {
	dir := t.TempDir()
	for bundle, sandbox := range map[string]string{"box": "", "main": "box", "orphan": "dead-box"} {
		if err := os.Mkdir(filepath.Join(dir, bundle), 0o700); err != nil {
			t.Fatal(err)
		}
		if sandbox == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, bundle, "sandbox"), []byte(sandbox), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := neededShims(dir)
	if want := map[string]bool{"box": true, "main": true, "orphan": true, "dead-box": true}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := neededShims(filepath.Join(dir, "none")); err != nil || len(got) != 0 {
		t.Errorf("of no folder: %v, %v", got, err)
	}
}

func TestShimOf(t *testing.T) {
	for line, want := range map[string]string{
		"/d/bin/shim -namespace k8s.io -id abc -address /d/run/containerd.sock": "abc",
		"/d/bin/shim -namespace k8s.io -id abc -bundle /b delete":               "",
		"/d/bin/shim -namespace k8s.io -id abc start":                           "",
		"/d/bin/shim -info": "",
		"/d/bin/shim -id":   "",
	} {
		if id, serves := shimOf(strings.Fields(line)); id != want || serves != (want != "") {
			t.Errorf("%q: %q %v, want %q", line, id, serves, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// EC-16: a log that somebody has just read is known to them, and to nobody else; after a while it is shown to them again.
func TestReadLogs(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	var l readLogs
	l.note("jane", path, noon)
	l.note("jane", path+".none", noon)
	for name, c := range map[string]struct {
		reader, path string
		after        time.Duration
		want         int64
	}{
		"who read it":        {"jane", path, time.Second, 5},
		"another one":        {"ann", path, time.Second, 0},
		"nobody knows who":   {"", path, time.Second, 0},
		"another log":        {"jane", path + ".none", time.Second, 0},
		"who read it before": {"jane", path, time.Minute, 0},
	} {
		if got := l.known(c.reader, c.path, noon.Add(c.after)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	l.note("", path, noon.Add(time.Minute))
	if got := l.known("", path, noon.Add(time.Minute)); got != 5 {
		t.Errorf("of an API server that tells nobody: %d", got)
	}
	l.note("ann", path, noon.Add(2*time.Minute))
	if len(l.last) != 1 {
		t.Errorf("%d are remembered", len(l.last))
	}
}

// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/podspec"
)

// What is known of a container is there to be read (IX-09).
func TestEvidence(t *testing.T) {
	c := exited("m1", "main", 4, 137)
	c.Reason, c.Message, c.Image = "OOMKilled", "no memory", "app:1"
	got, err := statusJSON(shown{Name: "main", Kind: podspec.Main, Container: c})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "name": "main",
  "type": "REGULAR",
  "id": "m1",
  "attempt": 4,
  "state": "exited",
  "image": "app:1",
  "startedAt": "2026-11-20T12:00:00Z",
  "finishedAt": "2026-11-20T12:01:00Z",
  "exitCode": 137,
  "signal": "SIGKILL",
  "oomKilled": true,
  "reason": "OOMKilled",
  "message": "no memory"
}
`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
	got, err = statusJSON(shown{Name: "main", Container: running("m1", "main", 0)})
	if err != nil || strings.Contains(string(got), "exitCode") || !strings.Contains(string(got), `"running"`) {
		t.Errorf("one that runs: %s, %v", got, err)
	}
	if got := envText([]string{"A=1", "KEY=line 1\nline \\2", "EMPTY="}); string(got) != "A=1\nKEY=line 1\\nline \\\\2\nEMPTY=\n" {
		t.Errorf("environment: %q", got)
	}
}

func TestLogEnd(t *testing.T) {
	got := logText([]byte("2026-11-20T12:00:00Z stdout F one\n2026-11-20T12:00:00Z stderr P tw\n2026-11-20T12:00:00Z stderr F o three\nnonsense\n2026-11-20T12:00:00Z stdout F \n"))
	if string(got) != "one\ntwo three\n\n" {
		t.Errorf("%q", got)
	}
	file := filepath.Join(t.TempDir(), "0.log")
	line := []byte("2026-11-20T12:00:00.000000000Z stdout F 0123456789\n")
	if err := os.WriteFile(file, bytes.Repeat(line, 2*logMost/len(line)), 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := logEnd(file, logMost)
	if err != nil || len(end) > logMost || len(end) < logMost/len(line)*10 || string(end[:11]) != "0123456789\n" {
		t.Errorf("%d bytes, %v, beginning %.20q", len(end), err, end)
	}
	if _, err := logEnd(file+".none", logMost); !os.IsNotExist(err) {
		t.Errorf("a log that is not there: %v", err)
	}
}

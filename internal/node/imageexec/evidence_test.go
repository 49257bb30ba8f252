// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"strings"
	"testing"
	"time"

	"github.com/wherryproject/wherry/internal/podspec"
)

// What is known of a container is there to be read (IX-09).
func TestEvidence(t *testing.T) {
	c := exited("m1", "main", 4, 137)
	c.Reason, c.Message, c.Image = "OOMKilled", "no memory", "app:1"
	c.CreatedAt = c.StartedAt.Add(-time.Second)
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
  "createdAt": "2026-11-20T11:59:59Z",
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
}

// SPDX-License-Identifier: Apache-2.0

package imageexec

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdmit: RS-05 (ATTACK A34): one image exec more is refused where a pod, a namespace or the node has as many as it may, and the
// refusal says which.
func TestAdmit(t *testing.T) {
	live := map[string]owner{"1": {"a", "p"}, "2": {"a", "p"}, "3": {"a", "q"}, "4": {"b", "r"}}
	for name, c := range map[string]struct {
		limits Limits
		of     owner
		want   string // "": admitted
	}{
		"no limits":         {Limits{}, owner{"a", "p"}, ""},
		"room":              {Limits{3, 4, 5}, owner{"a", "p"}, ""},
		"pod":               {Limits{2, 4, 5}, owner{"a", "p"}, "2 image execs of this pod"},
		"another pod":       {Limits{2, 4, 5}, owner{"a", "q"}, ""},
		"namespace":         {Limits{3, 3, 5}, owner{"a", "new"}, `3 image execs in namespace "a"`},
		"another namespace": {Limits{3, 3, 5}, owner{"b", "r"}, ""},
		"node":              {Limits{3, 3, 4}, owner{"c", "new"}, "4 image execs on this node"},
	} {
		err := c.limits.admit(live, c.of)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLogShare: RS-05 (ATTACK B15): the ends of logs that a session shows have a bound together, however many containers there are.
func TestLogShare(t *testing.T) {
	for _, containers := range []int{0, 1, 3, 10, 500} {
		var all int64
		for range containers + maxLater {
			share := logShare(containers, all)
			if share < 0 || share > logMost {
				t.Errorf("%d containers: a share of %d", containers, share)
			}
			all += share
		}
		if all > sessionLogs {
			t.Errorf("%d containers: %d bytes", containers, all)
		}
	}
	if logShare(1, 0) != logMost {
		t.Error("a single container's log is cut more than it needs to be")
	}
}

// TestLogsOfAll: RS-05 (ATTACK B15): the logs that all sessions show have a bound together, and a session gives its part back.
func TestLogsOfAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	line := "2026-11-23T00:00:00Z stdout F " + strings.Repeat("x", 1000) + "\n"
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 1100)), 0o600); err != nil {
		t.Fatal(err)
	}
	e := New(Config{Logger: slog.New(slog.DiscardHandler)})
	var all int64
	var sessions []*Session
	for i := range 100 {
		s := &Session{id: fmt.Sprint(i), e: e}
		text, err := s.log(file)
		if err != nil && !strings.Contains(err.Error(), "see kubectl logs") {
			t.Fatal(err)
		}
		all += int64(len(text))
		sessions = append(sessions, s)
	}
	if all > nodeLogs || all < nodeLogs/2 {
		t.Errorf("%d bytes of logs", all)
	}
	for _, s := range sessions {
		s.Close()
	}
	if e.logs != 0 {
		t.Errorf("%d bytes are still taken", e.logs)
	}
}

// TestClaim: RS-05 (ATTACK C32): one session at a time writes to an ended container's files.
func TestClaim(t *testing.T) {
	e := New(Config{})
	first, second := &Session{id: "1", e: e}, &Session{id: "2", e: e}
	first.hold("c", "c")
	second.hold("c", "c")
	mounts := 0
	f := Files{MountRoot: func(string, bool) error { mounts++; return nil }}
	for _, c := range []struct {
		s        *Session
		writable bool
		want     error
	}{{first, true, nil}, {second, true, errWritten}, {second, false, nil}, {first, true, nil}} {
		if err := c.s.alone("c", f).MountRoot("", c.writable); err != c.want {
			t.Errorf("session %s, writable %v: %v", c.s.id, c.writable, err)
		}
	}
	first.release()
	if err := second.alone("c", f).MountRoot("", true); err != nil || mounts != 4 {
		t.Errorf("after the first has gone: %v, %d mounts", err, mounts)
	}
}

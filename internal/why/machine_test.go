// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// DA-11: of a container without a pod, what its engine knows is explained in the same words, and what to try in those of its engine.
func TestMachine(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	began, ended := now.Add(-time.Hour), now.Add(-time.Minute)
	for name, c := range map[string]struct {
		m     Machine
		wrong bool
		want  []string
	}{
		"runs": {Machine{State: "running", Began: began}, false, []string{"running for 60 min", "nothing is wrong"}},
		"done": {Machine{State: "exited", Began: began, Ended: ended}, false, []string{"exit code 0, 60 s ago", "with success"}},
		"failed": {Machine{State: "exited", Code: 3, Began: began, Ended: ended, Tail: []string{"starting", "no database"}}, true,
			[]string{"failed with exit code 3; its last words: no database", "sudo wherry debug docker:web", "59 min after it began"}},
		"refused": {Machine{State: "exited", Code: 1, Ended: ended, Tail: []string{"dial tcp 10.0.0.7:5432: connection refused"}}, true,
			[]string{"nobody answers at 10.0.0.7:5432"}},
		"memory":  {Machine{State: "exited", Code: 137, OOM: true, MemoryLimit: "64Mi", Restarts: 4}, true, []string{"more memory than its limit of 64Mi", "docker update --memory", "4 restarts"}},
		"machine": {Machine{State: "exited", Code: 137, OOM: true}, true, []string{"because memory ran out", "give it a limit"}},
		"segv":    {Machine{State: "exited", Code: 139}, true, []string{"SIGSEGV"}},
		"denied":  {Machine{State: "exited", Code: 1, Tail: []string{"open /data/x: permission denied"}}, true, []string{"/data/x", "(--user)"}},
		"none": {Machine{State: "created", Words: `failed to create task: exec: "nosuch": executable file not found in $PATH: unknown`, Command: []string{"nosuch"}}, true,
			[]string{"its image has no program nosuch", "--entrypoint"}},
		"unstarted": {Machine{State: "created"}, true, []string{"never started", "docker start web"}},
		"paused":    {Machine{State: "paused"}, true, []string{"paused", "docker unpause web"}},
		"unhealthy": {Machine{State: "running", Health: &Health{Status: "unhealthy", Failing: 5, Code: 1, Output: "curl: (7) Failed: Connection refused\n"}}, true,
			[]string{"its health check fails, 5 times in a row: nobody answers", "exit code 1: curl"}},
		"starting": {Machine{State: "running", Health: &Health{Status: "starting"}}, false, []string{"nothing is wrong"}},
		"evil":     {Machine{State: "exited", Code: 1, Tail: []string{"\x1b[2Jgone\r" + strings.Repeat("x", 9999)}, Words: "\x1b]0;x"}, true, []string{"gone"}},
	} {
		c.m.Now, c.m.Target, c.m.Program, c.m.Name, c.m.Image = now, "docker:web", "docker", "web", "app:1"
		a := ExplainMachine(c.m)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if a.Wrong != c.wrong {
			t.Errorf("%s: wrong %v: %s", name, a.Wrong, text)
		}
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %q is not said: %s", name, want, text)
			}
		}
		for _, f := range a.Findings {
			for _, try := range f.Try {
				if ofKubernetes(try) {
					t.Errorf("%s: it is of no use without pods: %s", name, try)
				}
			}
		}
		if strings.ContainsAny(string(text), "\x1b\r") || strings.Contains(string(text), `\u001b[`) {
			t.Errorf("%s: it acts on a terminal: %s", name, text)
		}
	}
}

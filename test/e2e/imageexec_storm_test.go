// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// TestImageExecStorm: RS-06 (ATTACK A35): a container whose program renames files all the time below a long chain of links ends no
// call on the node in a loop. Its own volume may be missing from what the command sees, and is named then; the others' files are there.
func TestImageExecStorm(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.pod(`{metadata: {name: stormy}, spec: {volumes: [{name: vol, emptyDir: {}}, {name: calm, emptyDir: {}}], containers: [
		{name: storm, image: tool, args: [storm, /d], volumeMounts: [{name: vol, mountPath: /d/vol}]},
		{name: calm, command: [sh, -c, "echo quiet > /calm/file; IDLE"], volumeMounts: [{name: calm, mountPath: /calm}]}]}}`)
	k.WaitReady("stormy")
	k.awaitLog("stormy", "storm", "storm")
	for range 3 {
		out, errs, code := k.into("stormy", "cat /c/calm/calm/file; ls -d /c/storm/d.d")
		if code != 0 || !strings.HasPrefix(out, "quiet\n") || !strings.Contains(out, "d.d") {
			t.Errorf("code %d, %q, %q", code, out, errs)
		}
		if errs != "" && !strings.Contains(errs, "container storm: /d/vol is not shown: its mount point cannot be found: the path leads through ..") {
			t.Errorf("stderr: %q", errs)
		}
	}

}

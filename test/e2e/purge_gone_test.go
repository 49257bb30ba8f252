// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestPurgeRuntimeGone: RS-08: a data folder whose external runtime does not answer is not purged, since its pods may
// run on, and what can be done is said; with --runtime-gone it is, and no process, mount or cgroup of its pods is left.
func TestPurgeRuntimeGone(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	d := StartContainerd(t)
	d.Load(t, world(t))
	srv := own(t, ServerOptions{NoImages: true, Args: d.Flags()})
	k := inDefault(t, srv)
	st := srv.NewStage(t)
	pod := st.Pod("left", st.Act("main"))
	pod.Spec.HostNetwork = true
	k.Create(pod)
	pod = k.WaitReady("left")
	k.must(srv.Stop())
	d.Kill()

	purge := func(args ...string) (string, error) {
		out, err := srv.Wherry(k.ctx(), append([]string{"purge", "--data-dir", srv.DataDir, "--yes"},
			args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := purge(); err == nil || !strings.Contains(out, "--runtime-gone") || !strings.Contains(out, d.socket) {
		t.Errorf("purge without its runtime: %v, %s", err, out)
	}
	if found, err := processesWith(string(pod.UID)); err != nil || len(found) == 0 {
		t.Errorf("after a purge that was refused there are no processes of the pod (%v)", err)
	}
	if out, err := purge("--runtime-gone"); err != nil || !strings.Contains(out, "without their runtime") ||
		!strings.Contains(out, d.socket) {
		t.Fatalf("purge --runtime-gone: %v, %s", err, out)
	}
	if _, err := os.Stat(srv.DataDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder is still there (%v)", err)
	}
	for _, look := range []func(...string) ([]string, error){mountsWith, processesWith, cgroupsWith} {
		if found, err := look(string(pod.UID)); err != nil || len(found) > 0 {
			t.Errorf("left of the pod: %v (%v)", found, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAttackPurge: what others have bound or linked into a server's folders, and what a privileged pod has mounted for all to see, is not
// purged with them (RS-08).
// ATTACK A37.
func TestAttackPurge(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	srv := own(t, ServerOptions{Disk: "1200m"})
	needBusybox(t)
	k := inDefault(t, srv)
	h := newHoard(t)
	// Bidirectional needs shared mounts, which the root of a machine may not be.
	must(unix.Mount(h.dir, h.dir, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(unix.Unmount(h.dir, unix.MNT_DETACH)) })
	must(unix.Mount("", h.dir, "", unix.MS_SHARED, ""))
	must(unix.Mount("", filepath.Dir(srv.DataDir), "", unix.MS_SHARED, ""))

	pod := k.up(fmt.Sprintf(`
metadata: {name: bidi}
spec:
  containers:
  - name: main
    command: [sh, -c, "mkdir -p /own/bound && mount -o bind /hoard /own/bound && mount -o bind /hoard /own/bound && IDLE"]
    securityContext: {privileged: true}
    readinessProbe: {exec: {command: [test, -e, /own/bound/secret]}, periodSeconds: 1}
    volumeMounts:
    - {name: hoard, mountPath: /hoard, mountPropagation: Bidirectional}
    - {name: own, mountPath: /own, mountPropagation: Bidirectional}
  volumes: [{name: hoard, hostPath: {path: %s}}, {name: own, emptyDir: {}}]
`, h.dir))
	of := filepath.Join(srv.DataDir, "pods", string(pod.UID))
	for _, in := range []string{of, filepath.Join(srv.DataDir, "pods"), filepath.Join(srv.DataDir, "log"), srv.DataDir} {
		must(os.Symlink(h.dir, filepath.Join(in, "link")))
	}
	for _, at := range []string{filepath.Join(of, "bound"), filepath.Join(srv.DataDir, "bound")} {
		must(os.Mkdir(at, 0o755))
		must(unix.Mount(h.dir, at, "", unix.MS_BIND, ""))
		t.Cleanup(func() {
			for unix.Unmount(at, unix.MNT_DETACH) == nil {
			}
		})
	}
	must(srv.Stop())
	out, err := srv.Wherry(k.ctx(), "purge", "--data-dir", srv.DataDir, "--yes").CombinedOutput()
	if err != nil {
		t.Errorf("purge: %s, %v", out, err)
	}
	if _, err := os.Stat(srv.DataDir); !os.IsNotExist(err) {
		t.Errorf("the data folder is left: %v", err)
	}
	h.untouched()
}

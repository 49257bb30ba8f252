// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// awaitRotated waits until a folder of logs has more files than the one that is written.
func (k *kit) awaitRotated(dir string) {
	k.t.Helper()
	w, err := fsnotify.NewWatcher()
	k.must(err)
	defer w.Close()
	k.must(w.Add(dir))
	timeout := time.After(Timeout)
	for {
		if files, err := filepath.Glob(filepath.Join(dir, "0.log*")); err == nil && len(files) > 1 {
			return
		}
		select {
		case <-w.Events:
		case <-timeout:
			k.t.Fatalf("the logs in %s are not rotated", dir)
		}
	}
}

// PL-09: container logs are rotated, and those who follow them miss nothing; links name them for log shippers.
// ATTACK B5.
func TestLogRotation(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := k.up(`
metadata: {name: p}
spec:
  containers:
  - name: c
    command: [sh, -c, 'head -c 12000000 /dev/zero | tr "\0" x | fold -w 999; echo done; IDLE']
`)
	links, err := filepath.Glob(filepath.Join(k.DataDir, "log", "containers", "p_"+k.Namespace+"_c-*.log"))
	k.must(err)
	if len(links) != 1 {
		t.Fatalf("PL-09 links: %v", links)
	}
	dir := filepath.Join(k.DataDir, "log", "pods", k.Namespace+"_p_"+string(pod.UID), "c")
	if to, err := os.Readlink(links[0]); err != nil || to != filepath.Join(dir, "0.log") {
		t.Errorf("PL-09 the link shows %s (%v)", to, err)
	}
	tail := k.Start("logs", "-f", "--tail=1", "p")
	tail.Out.Await("done\n")
	k.awaitRotated(dir)
	k.sh("p", "c", "echo after >/proc/1/fd/1")
	tail.Out.Await("after\n")
}

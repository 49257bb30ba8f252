// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
func TestLogRotation(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	pod := k.up(`
metadata: {name: p}
spec:
  containers:
  - name: c
    command: [sh, -c, 'yes $(printf %0999d 1) | head -c 12000000; echo done; IDLE']
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

// PL-09: a program that writes hundreds of megabytes of log as fast as it can: each burst is rotated away, and what was written before the
// last two goes: the log's room follows from the size and the number of files that were asked for, not from what was written.
// ATTACK B5.
func TestLogFlood(t *testing.T) {
	t.Parallel()
	const size, files = 2 << 20, 2
	k := kitOn(t, own(t, ServerOptions{Args: []string{"--container-log-max-size", "2Mi", "--container-log-max-files", strconv.Itoa(files)}}))
	pod := k.up("metadata: {name: p}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	dir := filepath.Join(k.DataDir, "log", "pods", k.Namespace+"_p_"+string(pod.UID), "c")
	for _, megabytes := range []int{100, 100, 3, 3} {
		before := k.lastRotated(dir, files+1) // with one that is being made or removed
		k.sh("p", "c", fmt.Sprintf("yes $(printf %%09999d 1) | head -c %d000000 >/proc/1/fd/1; echo >/proc/1/fd/1", megabytes))
		k.awaitRotatedAfter(dir, before, files+1)
	}
	// The bursts are gone, also from the disk: the runtime has not kept the files open.
	var room int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			room += info.Size()
		}
		return err
	})
	k.must(err)
	if room > 4*size*files {
		t.Errorf("PL-09 after 206 MB the log takes %d bytes", room)
	}
}

// lastRotated names the log's last rotation, if there was one. There are never more files than most.
func (k *kit) lastRotated(dir string, most int) (last string) {
	k.t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "0.log.*"))
	k.must(err)
	if len(found) > most {
		k.t.Errorf("PL-09 the log has %d rotated files: %v", len(found), found)
	}
	for _, f := range found {
		last = max(last, strings.TrimSuffix(strings.TrimSuffix(f, ".tmp"), ".gz"))
	}
	return last
}

// awaitRotatedAfter waits until a log has been rotated since a rotation.
func (k *kit) awaitRotatedAfter(dir, before string, most int) {
	k.t.Helper()
	w, err := fsnotify.NewWatcher()
	k.must(err)
	defer w.Close()
	k.must(w.Add(dir))
	timeout := time.After(Timeout)
	for k.lastRotated(dir, most) <= before {
		select {
		case <-w.Events:
		case <-timeout:
			k.t.Fatalf("the log in %s is not rotated again after %q", dir, before)
		}
	}
}

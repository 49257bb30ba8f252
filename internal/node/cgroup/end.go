// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// endTime is how long killed processes are waited for. One that waits for a disk or a network file system does not end
// before that answers.
const endTime = 10 * time.Second

func (d *driver) EndPod(ctx context.Context, uid types.UID) (ended int, err error) {
	if err := checkUID(uid); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var folders []string
	for _, qos := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		for _, p := range d.paths(d.layout.pod(qos, uid)) {
			if cgroups.PathExists(p) {
				folders = append(folders, p)
			}
		}
	}
	for { // what was forked between the listing and the kill is met in the next round
		n, err := d.endRound(ctx, folders)
		ended += n
		if err != nil {
			return ended, fmt.Errorf("pod %s: %w", uid, err)
		}
		if n == 0 {
			return ended, nil
		}
	}
}

// endRound kills what is in the folders, and below, and waits until it has ended.
func (d *driver) endRound(ctx context.Context, folders []string) (killed int, err error) {
	seen, err := processes(folders)
	if err != nil || len(seen) == 0 {
		return 0, err
	}
	fds := map[int]int{}
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for pid := range seen {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		fds[pid] = fd
	}
	// A number may have been given to another process before it was opened: who is still listed is the one that was
	// opened, or in the cgroup too.
	still, err := processes(folders)
	if err != nil {
		return 0, err
	}
	for _, p := range folders {
		if err := endAtOnce(p); err != nil {
			return 0, err
		}
	}
	for pid, fd := range fds {
		if !still[pid] {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return killed, fmt.Errorf("kill process %d: %w", pid, err)
		}
		if err := awaitEnd(ctx, fd); err != nil {
			return killed, fmt.Errorf("process %d was killed and does not end: %w", pid, err)
		}
		killed++
	}
	if killed == 0 && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return max(killed, 1), nil // what was listed and is gone counts: another round makes sure
}

// processes are the numbers of the processes in folders and below.
func processes(folders []string) (map[int]bool, error) {
	out := map[int]bool{}
	for _, p := range folders {
		pids, err := cgroups.GetAllPids(p)
		if err != nil && !removed(err) {
			return nil, fmt.Errorf("processes of cgroup %s: %w", p, err)
		}
		for _, pid := range pids {
			out[pid] = true
		}
	}
	return out, nil
}

// endAtOnce has the kernel kill all that is in a cgroup of the unified hierarchy, also what is being forked; in a
// freezer of the first version it thaws them, since a frozen process there does not end.
func endAtOnce(folder string) error {
	if err := write(filepath.Join(folder, "cgroup.kill"), "1"); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		file := filepath.Join(path, "freezer.state")
		if state, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(state)) == "THAWED" {
			return nil // of another hierarchy, most often
		}
		return write(file, "THAWED")
	})
}

// write writes to a file of a cgroup that may not be there.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteString(text); errors.Is(err, unix.ENODEV) {
		return nil // it went meanwhile
	}
	return err
}

// awaitEnd waits for the end of a process.
func awaitEnd(ctx context.Context, pidfd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 50)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// parents are the folders of all sessions' cgroups: one, or one for each controller.
func (m Machine) parents() []string {
	all := []string{filepath.Join(m.Cgroups, name)}
	more, _ := filepath.Glob(filepath.Join(m.Cgroups, "*", name)) // the pattern is well-formed
	return append(all, more...)
}

// End ends a session's processes. It can be repeated.
func (m Machine) End(id string) error {
	var errs []error
	for _, parent := range m.parents() {
		dir := filepath.Join(parent, id)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := endCgroup(dir); err != nil {
			errs = append(errs, err)
		}
	}
	for _, parent := range m.parents() {
		_ = unix.Rmdir(parent) // if it was the last
	}
	return errors.Join(errs...)
}

// endTime bounds how long killed processes may take to be gone: one that waits for a dead disk takes for ever.
const endTime = 20 * time.Second

// endCgroup kills what is in a cgroup, waits for it, and removes the cgroup.
func endCgroup(dir string) error {
	until := time.Now().Add(endTime)
	for {
		pids, err := processes(dir)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			if err := endProcess(pid, dir, until); err != nil {
				return err
			}
		}
		if time.Now().After(until) {
			return fmt.Errorf("cgroup %s: its processes do not go", dir)
		}
		time.Sleep(time.Millisecond) // one that has ended stays in it until its parent has noticed
	}
	err := unix.Rmdir(dir)
	for err == unix.EBUSY && time.Now().Before(until) { // the kernel takes the last ones out after they were reaped
		time.Sleep(time.Millisecond)
		err = unix.Rmdir(dir)
	}
	if err != nil && err != unix.ENOENT {
		return fmt.Errorf("cgroup %s: %w", dir, err)
	}
	return nil
}

// processes are those in a cgroup.
func processes(dir string) ([]int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// endProcess kills a process that is in a cgroup and waits until it is gone. It is held while it is looked at, so that
// no other can have its number.
func endProcess(pid int, dir string, until time.Time) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	now, err := processes(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(now, pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	if err := awaitEnd(fd, until); err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}

// awaitEnd waits until a process has ended.
func awaitEnd(pidfd int, until time.Time) error {
	for {
		left := time.Until(until)
		if left <= 0 {
			return errors.New("it does not end")
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

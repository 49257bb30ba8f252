// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
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

// reapTime bounds how long a session's first process may take to reap the others, when they have been killed.
const reapTime = 2 * time.Second

// endCgroup kills what is in a cgroup, waits for it, and removes the cgroup. What was started from outside is killed
// last: it reaps the rest, which else would be left to the first process of the container, and that may reap nobody.
func endCgroup(dir string) error {
	until, reap := time.Now().Add(endTime), time.Now().Add(reapTime)
	for {
		pids, err := processes(dir)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		inner, outer := apart(pids, parentOf)
		if len(inner) == 0 || time.Now().After(reap) {
			inner = append(inner, outer...)
		}
		if err := endProcesses(inner, dir, until, reap); err != nil {
			return err
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

// apart separates processes that another of them has started from the others. (Pure.)
func apart(pids []int, parent func(int) int) (inner, outer []int) {
	for _, pid := range pids {
		if slices.Contains(pids, parent(pid)) {
			inner = append(inner, pid)
		} else {
			outer = append(outer, pid)
		}
	}
	return inner, outer
}

// parentOf is who has started a process; 0 if that is not known any more.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(f[1])
	return parent
}

// MemoryKills is how many of a session's processes the kernel has killed for want of memory, as long as it has a
// cgroup.
func (m Machine) MemoryKills(id string) (kills int) {
	for _, parent := range m.parents() {
		for _, file := range []string{"memory.events", "memory.oom_control"} { // of cgroups of version 2 and 1
			text, _ := os.ReadFile(filepath.Join(parent, id, file))
			kills = max(kills, killsIn(string(text)))
		}
	}
	return kills
}

// killsIn reads the number in what the kernel says of a cgroup's memory. (Pure.)
func killsIn(text string) int {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
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

// endProcesses kills processes that are in a cgroup and waits until they are gone; for a while also until they are
// reaped, as the kernel does not list them any more before that.
func endProcesses(pids []int, dir string, until, reap time.Time) error {
	var killed []int
	defer func() {
		for _, fd := range killed {
			unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := endProcess(pid, dir, until)
		if err != nil {
			return err
		}
		if fd >= 0 {
			killed = append(killed, fd)
		}
	}
	for _, fd := range killed {
		for unix.PidfdSendSignal(fd, 0, nil, 0) == nil && time.Now().Before(reap) {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// endProcess kills a process that is in a cgroup and waits until it has ended. It is held while it is looked at, so
// that no other can have its number, and after that by the descriptor, which is -1 if there is none.
func endProcess(pid int, dir string, until time.Time) (fd int, err error) {
	fd, err = unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("process %d: %w", pid, err)
	}
	now, err := processes(dir)
	if err == nil && slices.Contains(now, pid) {
		if err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err == nil || err == unix.ESRCH {
			err = awaitEnd(fd, until)
		}
		if err == nil {
			return fd, nil
		}
		err = fmt.Errorf("process %d: %w", pid, err)
	}
	unix.Close(fd)
	return -1, err
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

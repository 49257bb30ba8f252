// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is where a container's processes are: the folder of each controller by its name, of which there is one without
// a name on the unified hierarchy (version 2).
type cgroup map[string]string

// cgroupRoot is where cgroups are mounted, on every machine that runs containers.
const cgroupRoot = "/sys/fs/cgroup"

const (
	killTries  = 100                  // of killing all processes of a cgroup that may still be forking
	killPause  = 5 * time.Millisecond // between two
	emptyTries = 8                    // of removing a cgroup that its processes are just leaving; the pause doubles
)

// readCgroup reads what runc has noted of a container.
func readCgroup(s settings, id string) (cgroup, error) {
	var state struct {
		Paths cgroup `json:"cgroup_paths"`
	}
	path := filepath.Join(s.Root, id, "state.json")
	if err := readJSON(path, &state); err != nil {
		return nil, err
	}
	return state.Paths, nil
}

// cgroupAt is the cgroup with a path as the OCI specification has it, in all hierarchies of this machine that have its
// parent. That of CPU sets is left out in version 1: it takes nobody before it is set up.
func cgroupAt(root, path string) cgroup {
	out := cgroup{}
	if path == "" {
		return out
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		out[""] = filepath.Join(root, path)
		return out
	}
	controllers, err := os.ReadDir(root)
	if err != nil {
		return out
	}
	for _, c := range controllers {
		if !c.IsDir() || c.Name() == "cpuset" { // links are other names
			continue
		}
		at := filepath.Join(root, c.Name(), path)
		if _, err := os.Stat(filepath.Dir(at)); err == nil {
			out[c.Name()] = at
		}
	}
	return out
}

// take makes the folders and puts a process there.
func (c cgroup) take(pid int) error {
	var errs []error
	for _, path := range c {
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
	return errors.Join(errs...)
}

func (c cgroup) unified() (string, bool) {
	path, ok := c[""]
	return path, ok && path != ""
}

// any is one folder that has all processes, or nothing.
func (c cgroup) any() string {
	if path, ok := c.unified(); ok {
		return path
	}
	for _, controller := range []string{"devices", "pids", "memory", "freezer", "cpu"} {
		if path := c[controller]; path != "" {
			return path
		}
	}
	return ""
}

// below is the cgroup's path below the roots of the hierarchies, the same in all of them, or nothing.
func (c cgroup) below() string {
	if path := c["memory"]; path != "" {
		return strings.TrimPrefix(path, cgroupRoot+"/memory")
	}
	path, _ := c.unified()
	return strings.TrimPrefix(path, cgroupRoot)
}

// processes lists all processes, also of cgroups below.
func (c cgroup) processes() ([]int, error) {
	root := c.any()
	if root == "" {
		return nil, nil
	}
	var pids []int
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was just removed
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		file, err := os.Open(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if pid, err := strconv.Atoi(lines.Text()); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids, err
}

// kill ends every process.
func (c cgroup) kill() error {
	if path, ok := c.unified(); ok {
		err := os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
		if err == nil || errors.Is(err, unix.ENODEV) {
			return nil
		}
		// A kernel before 5.14, or the cgroup is gone: one by one.
	}
	for range killTries {
		pids, err := c.processes()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(killPause)
	}
	return fmt.Errorf("processes of %s do not end", c.any())
}

// remove removes the folders, and those below. What a process has just left is busy for a moment.
func (c cgroup) remove() error {
	left := slices.Collect(maps.Values(c))
	pause := killPause
	var errs error
	for range emptyTries {
		errs = nil
		left = slices.DeleteFunc(left, func(path string) bool {
			err := removeCgroup(path)
			errs = errors.Join(errs, err)
			return err == nil
		})
		if len(left) == 0 {
			return nil
		}
		time.Sleep(pause)
		pause *= 2
	}
	return errs
}

func removeCgroup(path string) error {
	if path == "" {
		return nil
	}
	err := unix.Rmdir(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, rerr := os.ReadDir(path)
	if rerr != nil {
		return &os.PathError{Op: "remove cgroup", Path: path, Err: err}
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "remove cgroup", Path: path, Err: err}
	}
	return nil
}

// oomFile is the file that counts the kernel's OOM kills, and says when there is one more.
func (c cgroup) oomFile() (path string, unified bool) {
	if path := c["memory"]; path != "" { // also where there is an empty unified hierarchy beside it
		return filepath.Join(path, "memory.oom_control"), false
	}
	if path, ok := c.unified(); ok {
		return filepath.Join(path, "memory.events"), true
	}
	return "", false
}

// oomKills reads how many processes the kernel has killed for want of memory.
func oomKills(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if name, count, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == "oom_kill" {
			n, _ := strconv.Atoi(count)
			return n
		}
	}
	return 0
}

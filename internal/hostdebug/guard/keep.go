// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kept is what the cgroup of a session's own command and guard ends in. What runs in the session is in another.
const kept = ".kept"

// Keep puts this process, which runs a session, into a cgroup of the machine's own in every hierarchy, and what it
// starts with it: the end of the container that asked for the session does not kill it before it reports (DA-09).
// [Machine.Leave] removes the cgroup.
func (m Machine) Keep(id string) error {
	if !ids.MatchString(id) {
		return fmt.Errorf("%q is not a session's ID", id)
	}
	all := m.hierarchies()
	if len(all) == 0 {
		return fmt.Errorf("there are no cgroups at %s", m.Cgroups)
	}
	for _, root := range all {
		dir := filepath.Join(root, name, id+kept)
		if err := persist(func() error { return enterNew(dir) }); err != nil {
			return fmt.Errorf("cgroup of the session: %w", err)
		}
	}
	return nil
}

// mostTries bounds how often something is made in what others remove: each time, one of them has ended.
const mostTries = 100

// persist makes something in a folder of all sessions. Whoever is the last of another session removes what is empty,
// which it may be until something is in it.
func persist(do func() error) error {
	err := do()
	for tries := 0; removed(err) && tries < mostTries; tries++ {
		err = do()
	}
	return err
}

// removed reports whether an error is that of a folder that was removed before, or of a cgroup that was removed while
// it was open. (Pure.)
func removed(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// enterNew makes a cgroup with the one above it, and goes into it.
func enterNew(dir string) error {
	for _, made := range []string{filepath.Dir(dir), dir} {
		if err := os.Mkdir(made, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		inheritSets(made)
	}
	return enter(dir)
}

// Leave is the last that a session's command or its guard does: it goes out of the session's own cgroup and removes it,
// if it was the last in it. Without one it does nothing.
func (m Machine) Leave(id string) {
	for _, root := range m.hierarchies() {
		dir := filepath.Join(root, name, id+kept)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		// Where the root of what is seen takes no processes, what is left is an empty cgroup, for [Machine.SweepKept].
		_ = enter(root)
		_ = unix.Rmdir(dir) // not if another is still in it
		_ = unix.Rmdir(filepath.Dir(dir))
	}
}

// SweepKept removes cgroups of commands and guards that nobody is in any more.
func (m Machine) SweepKept() {
	for _, root := range m.hierarchies() {
		all, _ := filepath.Glob(filepath.Join(root, name, "*"+kept)) // the pattern is well-formed
		for _, dir := range all {
			_ = unix.Rmdir(dir) // not if somebody is in it
		}
		_ = unix.Rmdir(filepath.Join(root, name))
	}
}

// hierarchies are the roots of the cgroups: one, or one for each controller.
func (m Machine) hierarchies() (all []string) {
	dirs, _ := filepath.Glob(filepath.Join(m.Cgroups, "*")) // the pattern is well-formed
	var fs unix.Statfs_t
	if unix.Statfs(m.Cgroups, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{m.Cgroups}
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() { // a link is another name of one
			continue
		}
		if unix.Statfs(dir, &fs) == nil && (fs.Type == unix.CGROUP_SUPER_MAGIC || fs.Type == unix.CGROUP2_SUPER_MAGIC) {
			all = append(all, dir)
		}
	}
	return all
}

func enter(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// inheritSets gives a cgroup of version 1 the processors and memory of the one above it: without, nobody comes in.
func inheritSets(dir string) {
	if _, err := os.Stat(filepath.Join(dir, "cpuset.cpus.effective")); err == nil {
		return // version 2
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || strings.TrimSpace(string(own)) != "" {
			continue
		}
		above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err == nil && strings.TrimSpace(string(above)) != "" {
			_ = os.WriteFile(filepath.Join(dir, file), above, 0) // the move into it says what is wrong
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/node/evict"
)

// Meter says where to measure.
type Meter struct {
	Proc string // where procfs is mounted
	// MemoryGroup is the root of the memory controller's hierarchy on cgroup v1, or "" on v2.
	MemoryGroup string
	NodeFs      string // a folder on the file system of pods' volumes and logs
	ImageFs     string // one on that of images; "": not known
}

// Read measures everything once. What could not be measured is not in the readings, and reported in the error.
func (m Meter) Read() (evict.Readings, error) {
	out := evict.Readings{}
	var errs []error
	take := func(s evict.Signal, r evict.Reading, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("measuring %s: %w", s, err))
			return
		}
		out[s] = r
	}
	memory, err := m.memory()
	take(evict.MemoryAvailable, memory, err)
	pids, err := m.pids()
	take(evict.PIDAvailable, pids, err)
	for _, fs := range []struct {
		at           string
		bytes, files evict.Signal
	}{{m.NodeFs, evict.NodeFsAvailable, evict.NodeFsInodesFree},
		{m.ImageFs, evict.ImageFsAvailable, evict.ImageFsInodesFree}} {
		if fs.at == "" {
			continue
		}
		bytes, files, err := fileSystem(fs.at)
		take(fs.bytes, bytes, err)
		if err == nil && files.Capacity > 0 { // some count no inodes
			out[fs.files] = files
		}
	}
	return out, errors.Join(errs...)
}

// memory is the capacity without the working set, which is what is in use without the file cache that nobody touched
// lately: the kubelet's measure, see "memory.available" in the documentation of node-pressure eviction.
func (m Meter) memory() (evict.Reading, error) {
	info, err := numbers(filepath.Join(m.Proc, "meminfo"))
	if err != nil {
		return evict.Reading{}, err
	}
	total := info["MemTotal:"] << 10
	if total <= 0 {
		return evict.Reading{}, errors.New("meminfo has no MemTotal")
	}
	if m.MemoryGroup == "" { // the root of v2 does not say what it uses
		left := (info["MemFree:"] + info["Inactive(file):"]) << 10
		return evict.Reading{Available: min(max(left, 0), total), Capacity: total}, nil
	}
	used, err := number(filepath.Join(m.MemoryGroup, "memory.usage_in_bytes"))
	if err != nil {
		return evict.Reading{}, err
	}
	stat, err := numbers(filepath.Join(m.MemoryGroup, "memory.stat"))
	if err != nil {
		return evict.Reading{}, err
	}
	working := max(used-stat["total_inactive_file"], 0)
	return evict.Reading{Available: max(total-working, 0), Capacity: total}, nil
}

// pids counts threads, as the kernel's limits do.
func (m Meter) pids() (evict.Reading, error) {
	most, err := number(filepath.Join(m.Proc, "sys/kernel/pid_max"))
	if err != nil {
		return evict.Reading{}, err
	}
	threads, err := number(filepath.Join(m.Proc, "sys/kernel/threads-max"))
	if err != nil {
		return evict.Reading{}, err
	}
	if most = min(most, threads); most <= 0 {
		return evict.Reading{}, fmt.Errorf("%s: pid_max and threads-max let no process be", m.Proc)
	}
	load, err := os.ReadFile(filepath.Join(m.Proc, "loadavg"))
	if err != nil {
		return evict.Reading{}, err
	}
	f := strings.Fields(string(load)) // 0.30 0.32 1.04 1/93 14132
	if len(f) < 4 {
		return evict.Reading{}, fmt.Errorf("loadavg is %q", load)
	}
	_, all, _ := strings.Cut(f[3], "/")
	n, err := strconv.ParseInt(all, 10, 64)
	if err != nil || n < 0 {
		return evict.Reading{}, fmt.Errorf("loadavg is %q", load)
	}
	return evict.Reading{Available: max(most-n, 0), Capacity: most}, nil
}

// Disk is what the file system at a path has left, in bytes.
func Disk(at string) (evict.Reading, error) {
	bytes, _, err := fileSystem(at)
	return bytes, err
}

// fileSystem is what a file system has left for those who are not root.
func fileSystem(at string) (bytes, files evict.Reading, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(at, &s); err != nil {
		return bytes, files, fmt.Errorf("%s: %w", at, err)
	}
	bytes = evict.Reading{Available: int64(s.Bavail) * s.Bsize, Capacity: int64(s.Blocks) * s.Bsize}
	files = evict.Reading{Available: int64(s.Ffree), Capacity: int64(s.Files)}
	return bytes, files, nil
}

func number(path string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// numbers reads a file of lines "name number".
func numbers(path string) (map[string]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]int64{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		if w := strings.Fields(s.Text()); len(w) >= 2 {
			if n, err := strconv.ParseInt(w[1], 10, 64); err == nil {
				out[w[0]] = n
			}
		}
	}
	return out, s.Err()
}

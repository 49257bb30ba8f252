// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/node/allot"
)

// Figures is what the kernel counts of a cgroup and what it gives it, beside what a runtime tells: what cAdvisor shows
// of containers. Nil is what is not known.
type Figures struct {
	// Path is where the cgroup lies below the mounts; "" if there is none that was found.
	Path string

	// Periods are those of a CPU quota that have gone by with something to run, and how many of them it ran out in; for
	// how long it had to wait then. Nil without a quota.
	Periods, Throttled *uint64
	ThrottledFor       *time.Duration
	// Quota in µs of each Period; 0 for none.
	Quota, Period, Shares *uint64

	// Cache are bytes of files, RSS bytes of the processes' own; Limit is 0 if there is none.
	Cache, RSS, Limit *uint64
	// Hits is how often the limit stood in the way of more memory, OOMKills how many processes died of that. On v2 both
	// count what is below, too; on v1 nothing does, so OOMKills of a pod are not known there.
	Hits, OOMKills *uint64
}

// Figures reads a pod's cgroup, by its path (Driver.ParentOf), and those of its containers by their ids.
//
// Containers are found by the names of the folders there: runtimes call them ID, or PREFIX-ID.scope where systemd makes
// them, each with a prefix of its own.
func (h Host) Figures(pod string, containers []string) (own Figures, of map[string]Figures) {
	root := h.Mounts["memory"]
	if h.V2 {
		root = h.Mounts[""]
	}
	if root == "" {
		return own, nil
	}
	below, err := os.ReadDir(filepath.Join(root, pod))
	if err != nil {
		return own, nil
	}
	own = h.figures(pod)
	if !h.V2 {
		own.OOMKills = nil
	}
	of = make(map[string]Figures, len(containers))
	for _, e := range below {
		if id := idOf(e.Name()); e.IsDir() && slices.Contains(containers, id) {
			of[id] = h.figures(path.Join(pod, e.Name()))
		}
	}
	return own, of
}

// figures reads one cgroup.
func (h Host) figures(at string) Figures {
	f := Figures{Path: at}
	if h.V2 {
		f.unified(func(file string) string { return readAll(filepath.Join(h.Mounts[""], at, file)) })
		return f
	}
	f.legacy(func(controller, file string) string {
		if h.Mounts[controller] == "" {
			return ""
		}
		return readAll(filepath.Join(h.Mounts[controller], at, file))
	})
	return f
}

// unified takes the figures from the files of version 2. (Pure.)
func (f *Figures) unified(text func(file string) string) {
	if quota, period, ok := strings.Cut(text("cpu.max"), " "); ok {
		f.Quota, f.Period = bound(quota), bound(period)
	}
	if weight := bound(text("cpu.weight")); weight != nil {
		shares := uint64(allot.OfWeight(int64(*weight)))
		f.Shares = &shares
	}
	if f.Quota != nil && *f.Quota > 0 {
		f.throttling(text("cpu.stat"), "throttled_usec", time.Microsecond)
	}
	memory, events := text("memory.stat"), text("memory.events")
	f.Cache, f.RSS, f.Limit = keyed(memory, "file"), keyed(memory, "anon"), bound(text("memory.max"))
	f.Hits, f.OOMKills = keyed(events, "max"), keyed(events, "oom_kill")
}

// legacy takes the figures from the files of version 1. (Pure.)
func (f *Figures) legacy(text func(controller, file string) string) {
	f.Quota, f.Period = bound(text("cpu", "cpu.cfs_quota_us")), bound(text("cpu", "cpu.cfs_period_us"))
	f.Shares = bound(text("cpu", "cpu.shares"))
	if f.Quota != nil && *f.Quota > 0 {
		f.throttling(text("cpu", "cpu.stat"), "throttled_time", time.Nanosecond)
	}
	memory := text("memory", "memory.stat")
	f.Cache, f.RSS = keyed(memory, "total_cache"), keyed(memory, "total_rss")
	f.Limit, f.Hits = bound(text("memory", "memory.limit_in_bytes")), bound(text("memory", "memory.failcnt"))
	f.OOMKills = keyed(text("memory", "memory.oom_control"), "oom_kill")
}

// throttling takes what a CPU quota did. (Pure.)
func (f *Figures) throttling(stat, key string, unit time.Duration) {
	f.Periods, f.Throttled = keyed(stat, "nr_periods"), keyed(stat, "nr_throttled")
	if n := keyed(stat, key); n != nil {
		waited := time.Duration(*n) * unit
		f.ThrottledFor = &waited
	}
}

// keyed is the number that stands behind a word in a line; nil if there is no such line. (Pure.)
func keyed(text, key string) *uint64 {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == key {
			if n, err := strconv.ParseUint(v, 10, 64); err == nil {
				return &n
			}
		}
	}
	return nil
}

// bound is a file's only number: 0 where it stands for no limit, nil if it is none. (Pure.)
func bound(text string) *uint64 {
	var none uint64
	text = strings.TrimSpace(text)
	if text == "max" || text == "-1" {
		return &none
	}
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return nil
	case n >= boundless:
		return &none
	}
	return &n
}

// idOf is the id of the container that a folder below a pod's cgroup is named after. (Pure.)
func idOf(folder string) string {
	name, scope := strings.CutSuffix(folder, ".scope")
	if !scope {
		return folder
	}
	return name[strings.LastIndex(name, "-")+1:]
}

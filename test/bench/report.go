// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// result is one line of the table. One of Figure, Bytes and Share is what was measured; one of the limits that belong
// to it may be set.
type result struct {
	What string
	Note string // beside the figure

	Figure   time.Duration
	Bare     time.Duration // 0: there is no such thing
	Limit    time.Duration
	MaxRatio float64       // of Figure to Bare
	MaxOver  time.Duration // of Figure over Bare

	Bytes, MaxBytes int64
	Share, MaxShare float64 // of one core
}

func (r result) figure() string {
	s := ""
	switch {
	case r.Bytes > 0:
		s = mib(r.Bytes)
	case r.Figure > 0:
		s = ms(r.Figure)
	default:
		s = fmt.Sprintf("%.2f %% of a core", 100*r.Share)
	}
	if r.Note != "" {
		s += " (" + r.Note + ")"
	}
	return s
}

func (r result) bare() string {
	if r.Bare == 0 {
		return "–"
	}
	return ms(r.Bare)
}

func (r result) ratio() string {
	if r.Bare == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", r.Figure.Seconds()/r.Bare.Seconds())
}

// verdict returns what is to be reached, and whether it was or by how much not.
func (r result) verdict() (target, verdict string) {
	over := func(have, most float64, by string) string {
		if have <= most {
			return "met"
		}
		return "missed by " + by
	}
	switch {
	case r.MaxRatio > 0:
		most := time.Duration(r.MaxRatio * float64(r.Bare))
		return fmt.Sprintf("≤ %g × bare", r.MaxRatio), over(float64(r.Figure), float64(most), ms(r.Figure-most))
	case r.MaxOver > 0:
		return "≤ bare + " + ms(r.MaxOver), over(float64(r.Figure), float64(r.Bare+r.MaxOver),
			ms(r.Figure-r.Bare-r.MaxOver))
	case r.Limit > 0:
		return "≤ " + ms(r.Limit), over(float64(r.Figure), float64(r.Limit), ms(r.Figure-r.Limit))
	case r.MaxBytes > 0:
		return "≤ " + mib(r.MaxBytes), over(float64(r.Bytes), float64(r.MaxBytes), mib(r.Bytes-r.MaxBytes))
	case r.MaxShare > 0:
		return fmt.Sprintf("≤ %.1f %%", 100*r.MaxShare), over(r.Share, r.MaxShare,
			fmt.Sprintf("%.2f %%", 100*(r.Share-r.MaxShare)))
	}
	return "–", "–"
}

func (r result) cells() []string {
	target, verdict := r.verdict()
	return []string{r.What, r.figure(), r.bare(), r.ratio(), target, verdict}
}

func (r result) String() string { return strings.Join(r.cells(), " | ") }

func table(results []result) string {
	var b strings.Builder
	b.WriteString("| what | Wherry | bare CRI calls | ratio | to reach | |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s |\n", r)
	}
	return b.String()
}

func ms(d time.Duration) string {
	if d > -time.Millisecond && d < time.Millisecond {
		return fmt.Sprintf("%.3f ms", d.Seconds()*1000)
	}
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
}

func mib(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/(1<<20)) }

// conditions are what the figures were measured under.
type conditions struct {
	settings
	machine       string
	before, after string // load averages
	at            time.Time
}

// lookAtMachine describes this machine in one line.
func lookAtMachine() string {
	cpu := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	total, _ := field("/proc/meminfo", "MemTotal:") // 0 where it cannot be had
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	groups := "v1"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		groups = "v2"
	}
	return fmt.Sprintf("%d × %s, %d GiB, Linux %s, cgroup %s, %s", runtime.NumCPU(), cpu, (total+1<<19)>>20,
		strings.TrimSpace(string(kernel)), groups, runtime.Version())
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// notesMark divides the report: what is above it this program writes, what is below it people do.
const notesMark = "<!-- Written by hand from here on; make bench keeps it. -->"

func writeReport(path, table string, c conditions) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, notes, _ := strings.Cut(string(old), notesMark)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(`# Benchmarks

%s
Measured by `+"`make bench`"+` (`+"`go run ./test/bench`"+`) on %s: %s; load average %s at the start, %s at the end. Both sides of a
row run in turns in one run, against the same runtime: the bare calls go to the CRI socket of the very server that is measured, and
ask for the same pod (cgroup parent, log folder, pod network, mounts). Medians of %d; a ratio is that of the medians. CPU is the server
process's user and system time. A shared machine's absolute times are worth little; look at the ratios.

%s%s`, table, c.at.UTC().Format(time.DateOnly), c.machine, c.before, c.after, c.n, notesMark, notes)
	if notes == "" {
		text += "\n"
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

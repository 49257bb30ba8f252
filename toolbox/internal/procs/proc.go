// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc: USER_HZ, which is 100 on every Linux.
const tick = time.Second / 100

// Proc is a process.
type Proc struct {
	PID, PPID, UID, GID, TTY, Threads int
	RealUID, RealGID                  int
	Group, Session, Nice              int
	State                             string
	Name                              string   // as the kernel has it, 15 letters
	Args                              []string // empty for the kernel's own
	CPU                               time.Duration
	Start                             time.Time
	RSS, VSize                        int64
}

// Command is the command line, or the name in brackets.
func (p *Proc) Command() string {
	if len(p.Args) == 0 {
		return "[" + p.Name + "]"
	}
	return strings.Join(strings.Fields(strings.Join(p.Args, " ")), " ")
}

// All reads the processes, sorted by id.
func All() ([]*Proc, error) {
	ids, err := numbers("/proc")
	if err != nil {
		return nil, fmt.Errorf("processes cannot be listed, is /proc mounted? %w", err)
	}
	boot := bootTime()
	var out []*Proc
	for _, id := range ids {
		if p, err := read(fmt.Sprintf("/proc/%d", id), boot); err == nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// numbers lists the entries of a folder that are numbers, in order.
func numbers(dir string) ([]int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, n := range names {
		if id, err := strconv.Atoi(n); err == nil {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out, nil
}

func bootTime() time.Time {
	text, _ := os.ReadFile("/proc/stat")
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "btime "); ok {
			sec, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return time.Unix(sec, 0)
		}
	}
	return time.Time{}
}

// read reads one process from its folder in /proc.
func read(dir string, boot time.Time) (*Proc, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil, err
	}
	open, shut := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if open < 0 || shut < open {
		return nil, fmt.Errorf("%s/stat is not as expected", dir)
	}
	f := strings.Fields(string(text[shut+1:]))
	if len(f) < 22 {
		return nil, fmt.Errorf("%s/stat is not as expected", dir)
	}
	n := func(i int) int64 { v, _ := strconv.ParseInt(f[i], 10, 64); return v }
	p := &Proc{
		Name: string(text[open+1 : shut]), State: f[0], PPID: int(n(1)), TTY: int(n(4)), Threads: int(n(17)),
		CPU: time.Duration(n(11)+n(12)) * tick, Start: boot.Add(time.Duration(n(19)) * tick), VSize: n(20),
		RSS: n(21) * int64(os.Getpagesize()), Group: int(n(2)), Session: int(n(3)), Nice: int(n(16)),
	}
	p.PID, _ = strconv.Atoi(strings.TrimSpace(string(text[:open])))
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(status)) {
		if v := strings.Fields(line); len(v) > 2 && v[0] == "Uid:" {
			p.RealUID, _ = strconv.Atoi(v[1])
			p.UID, _ = strconv.Atoi(v[2]) // the effective one
		} else if len(v) > 2 && v[0] == "Gid:" {
			p.RealGID, _ = strconv.Atoi(v[1])
			p.GID, _ = strconv.Atoi(v[2])
		}
	}
	if line, _ := os.ReadFile(filepath.Join(dir, "cmdline")); len(line) > 0 {
		p.Args = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	}
	return p, nil
}

// terminalName words a terminal's number as ps does.
func terminalName(n int) string {
	major, minor := n>>8&0xfff, n&0xff|n>>12&0xfff00
	switch {
	case n == 0:
		return "?"
	case major >= 136 && major <= 143:
		return fmt.Sprintf("pts/%d", (major-136)<<8+minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("tty%d", minor)
	case major == 4:
		return fmt.Sprintf("ttyS%d", minor-64)
	}
	return fmt.Sprintf("%d,%d", major, minor)
}

// memory reads /proc/meminfo, in bytes.
func memory() (map[string]int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, v, _ := strings.Cut(line, ":")
		if f := strings.Fields(v); len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			out[name] = n * 1024
		}
	}
	return out, nil
}

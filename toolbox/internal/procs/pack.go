// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

const (
	mostFile      = 1 << 20 // bytes of one file of the kernel's
	mostProcesses = 2000
	mostThreads   = 500 // of one process
	mostOpen      = 2000
)

// packer writes what the kernel tells of processes into an archive.
type packer struct {
	proc string // where it is mounted
	out  *tar.Writer
	now  time.Time
	// environment is packed only if it was asked for: it is where passwords are.
	environment bool
	refused     int // processes that may not be looked into
}

// procPack is the command proc-pack.
func procPack(c *applet.Call) error {
	environment := c.Bool(",environment", "pack the processes' environments too, which may have passwords in them")
	tree := c.Int(",tree", "PID", 0, "pack this process and those below it only")
	if err := c.Parse(0, 0); err != nil {
		return err
	}
	p := packer{proc: "/proc", out: tar.NewWriter(c.Out), now: time.Now(), environment: *environment}
	ids, err := numbers(p.proc)
	if err != nil {
		return fmt.Errorf("processes cannot be listed, is /proc mounted? %w", err)
	}
	if *tree != 0 {
		ids = below(ids, int(*tree), parentOf)
	}
	left := 0
	for i, id := range ids {
		if id == os.Getpid() {
			continue // that is this one
		}
		if i >= mostProcesses {
			left = len(ids) - i
			break
		}
		if err := p.process(id); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
	}
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6", "unix", "raw", "icmp", "route", "ipv6_route", "dev",
		"snmp", "netstat", "arp"} {
		if err := p.file("self/net/"+name, "net/"+name); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
	}
	if p.refused > 0 {
		c.Warn(fmt.Errorf("user %d may not look into %d processes of other users: what they have open and in memory is missing",
			os.Getuid(), p.refused))
	}
	if left > 0 {
		c.Warn(fmt.Errorf("there are %d processes more than the %d that are packed", left, mostProcesses))
	}
	return p.out.Close()
}

// below are a process and those that it has begun, they or theirs.
func below(ids []int, top int, parent func(id int) int) (all []int) {
	parents := map[int]int{}
	for _, id := range ids {
		parents[id] = parent(id)
	}
	for _, id := range ids {
		for at, n := id, 0; at != 0 && n <= len(ids); at, n = parents[at], n+1 {
			if at == top {
				all = append(all, id)
				break
			}
		}
	}
	return all
}

// parentOf is a process's parent; 0 if there is none.
func parentOf(id int) int {
	p, err := read(fmt.Sprintf("/proc/%d", id), time.Time{})
	if err != nil {
		return 0
	}
	return p.PPID
}

// process packs what is known of one. One that ends meanwhile is left out, in part or whole.
func (p *packer) process(id int) error {
	n := strconv.Itoa(id)
	names := []string{"status", "stat", "cmdline", "maps", "smaps_rollup", "limits", "cgroup", "mountinfo", "wchan",
		"stack", "io", "oom_score", "oom_score_adj", "schedstat", "comm"}
	if p.environment {
		names = append(names, "environ")
	}
	for _, name := range names {
		if err := p.file(n+"/"+name, "proc/"+n+"/"+name); err != nil {
			return err
		}
	}
	if _, err := os.ReadDir(filepath.Join(p.proc, n, "fd")); errors.Is(err, fs.ErrPermission) {
		p.refused++
	}
	if err := p.text("proc/"+n+"/fds", p.opened(n)); err != nil {
		return err
	}
	return p.text("proc/"+n+"/threads", p.threads(n))
}

// opened lists what a process has open, and where it is.
func (p *packer) opened(n string) string {
	var b strings.Builder
	for _, name := range []string{"exe", "cwd", "root"} {
		if to, err := os.Readlink(filepath.Join(p.proc, n, name)); err == nil {
			fmt.Fprintf(&b, "%s -> %s\n", name, applet.Plain(to))
		}
	}
	fds, err := numbers(filepath.Join(p.proc, n, "fd"))
	if err != nil {
		return b.String()
	}
	for i, fd := range fds {
		if i == mostOpen {
			fmt.Fprintf(&b, "and %d more\n", len(fds)-i)
			break
		}
		if to, err := os.Readlink(filepath.Join(p.proc, n, "fd", strconv.Itoa(fd))); err == nil {
			fmt.Fprintf(&b, "%d -> %s\n", fd, applet.Plain(to))
		}
	}
	return b.String()
}

// threads lists a process's threads with what they wait for in the kernel.
func (p *packer) threads(n string) string {
	ids, err := numbers(filepath.Join(p.proc, n, "task"))
	if err != nil {
		return ""
	}
	var b strings.Builder
	for i, id := range ids {
		if i == mostThreads {
			fmt.Fprintf(&b, "and %d more\n", len(ids)-i)
			break
		}
		dir := filepath.Join(p.proc, n, "task", strconv.Itoa(id))
		t, err := read(dir, time.Time{})
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "%d %s %s %s\n", id, t.State, t.CPU, applet.Plain(t.Name))
		if stack, err := p.read(filepath.Join(dir, "stack")); err == nil && len(stack) > 0 {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(strings.TrimSpace(string(stack)), "\n", "\n    "))
		}
	}
	return b.String()
}

// read reads a file of the kernel's, of so many bytes at most.
func (p *packer) read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostFile))
}

// file packs a file of the kernel's, if there is one that may be read.
func (p *packer) file(path, as string) error {
	text, err := p.read(filepath.Join(p.proc, path))
	if err != nil || len(text) == 0 {
		return nil
	}
	return p.text(as, string(text))
}

func (p *packer) text(name, text string) error {
	if text == "" {
		return nil
	}
	err := p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(fs.FileMode(0o600)),
		Size: int64(len(text)), ModTime: p.now})
	if err == nil {
		_, err = io.WriteString(p.out, text)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/accounts"
	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// Holder is a process that has a socket open.
type Holder struct {
	PID, FD int
	Name    string
}

// Sockets finds out which processes have which sockets (by inode). Those that may not be looked into are left out.
func Sockets() map[uint64][]Holder {
	out := map[uint64][]Holder{}
	ids, _ := numbers("/proc")
	for _, pid := range ids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		fds, _ := numbers(dir)
		name := ""
		for _, fd := range fds {
			to, err := os.Readlink(filepath.Join(dir, strconv.Itoa(fd)))
			if err != nil || !strings.HasPrefix(to, "socket:[") {
				continue
			}
			inode, err := strconv.ParseUint(strings.Trim(to[len("socket:"):], "[]"), 10, 64)
			if err != nil {
				continue
			}
			if name == "" {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				name = strings.TrimSpace(string(text))
			}
			out[inode] = append(out[inode], Holder{pid, fd, name})
		}
	}
	return out
}

func lsof(c *applet.Call) error {
	only := c.Strings("p", "PID[,PID]...", "these processes only")
	bare := c.Bool("t", "process ids only")
	name := c.String("c", "NAME", "", "processes whose name begins so")
	c.Bool("n", "does nothing: there are no names of machines here")
	c.Bool("P", "does nothing: there are no names of ports here")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	list, err := All()
	if err != nil {
		return err
	}
	var pids []string
	if len(*only) > 0 {
		pids = strings.Split(strings.Join(*only, ","), ",")
	}
	var wanted []string
	for _, a := range c.Args {
		full, err := filepath.Abs(a)
		if err != nil {
			return err
		}
		wanted = append(wanted, full)
	}
	var names accounts.Names
	if !*bare {
		c.Printf("%-16s %7s %-10s %5s %-5s %s\n", "COMMAND", "PID", "USER", "FD", "MODE", "NAME")
	}
	hit := false
	for _, p := range list {
		if len(pids) > 0 && !slices.Contains(pids, strconv.Itoa(p.PID)) || !strings.HasPrefix(p.Name, *name) {
			continue
		}
		one := false
		for _, f := range openFiles(p.PID) {
			if len(wanted) > 0 && !slices.ContainsFunc(wanted,
				func(w string) bool { return f.name == w || strings.HasPrefix(f.name, w+"/") }) {
				continue
			}
			hit, one = true, true
			if !*bare {
				c.Printf("%-16s %7d %-10s %5s %-5s %s\n", p.Name, p.PID, names.User(p.UID), f.fd, f.mode, f.name)
			}
		}
		if *bare && one {
			c.Println(p.PID)
		}
	}
	if !hit {
		return applet.Exit(1)
	}
	return nil
}

type openFile struct{ fd, mode, name string }

// openFiles lists what a process has open: folder, program, mapped files, file descriptors.
func openFiles(pid int) (out []openFile) {
	dir := fmt.Sprintf("/proc/%d", pid)
	for _, l := range []string{"cwd", "root", "exe"} {
		if to, err := os.Readlink(filepath.Join(dir, l)); err == nil {
			out = append(out, openFile{map[string]string{"cwd": "cwd", "root": "rtd", "exe": "txt"}[l], "", to})
		}
	}
	maps, _ := os.ReadFile(filepath.Join(dir, "maps"))
	seen := map[string]bool{}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 5 && strings.HasPrefix(f[5], "/") && !seen[f[5]] &&
			(len(out) < 3 || f[5] != out[2].name) {
			seen[f[5]] = true
			out = append(out, openFile{"mem", "", strings.Join(f[5:], " ")})
		}
	}
	fds, _ := numbers(filepath.Join(dir, "fd"))
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(dir, "fd", strconv.Itoa(fd)))
		if err != nil {
			continue
		}
		mode := ""
		info, _ := os.ReadFile(filepath.Join(dir, "fdinfo", strconv.Itoa(fd)))
		for line := range strings.Lines(string(info)) {
			if v, ok := strings.CutPrefix(line, "flags:"); ok {
				flags, _ := strconv.ParseInt(strings.TrimSpace(v), 8, 64)
				mode = []string{"r", "w", "rw", "?"}[flags&3]
			}
		}
		out = append(out, openFile{strconv.Itoa(fd), mode, to})
	}
	return out
}

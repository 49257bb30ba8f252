// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// PowerOff does to a server's node what a power cut does, so that the next Start is as after a boot: every process of
// it is killed, its mounts, cgroups and network are gone, what lay in /run is gone, and the boot is another one. What
// is on disk stays.
func (s *Server) PowerOff() error {
	s.Kill()
	f, err := s.footprint()
	if err != nil {
		return err
	}
	if err := killWith(f.dataDir+"/", f.cgroupRoot()); err != nil {
		return err
	}
	link := filepath.Join("/run/wherry", linkOf(f.dataDir))
	return errors.Join(unmountAll(f.dataDir), removeCgroups(f.cgroupRoot()), f.unplug(), os.RemoveAll(link),
		os.WriteFile(filepath.Join(f.dataDir, "runtime", "run", "boot-id"), []byte("the boot before\n"), 0o600))
}

// killWith kills the processes whose command lines or cgroups contain one of the texts.
func killWith(texts ...string) error {
	for range 100 { // a shim may be starting something
		processes, err := processesWith(texts...)
		if err != nil {
			return err
		}
		if len(processes) == 0 {
			return nil
		}
		for _, line := range processes {
			text, _, _ := strings.Cut(strings.TrimPrefix(line, "process "), ":")
			pid, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			_ = syscall.Kill(pid, syscall.SIGKILL) // an error says that it has ended
		}
		time.Sleep(20 * time.Millisecond) // they are no children of ours to wait for
	}
	return fmt.Errorf("processes with %q in their names go on", texts)
}

// LoseNetwork takes the firewall table, the bridge and what is on it away from under a running server.
func (s *Server) LoseNetwork() error {
	f, err := s.footprint()
	if err != nil {
		return err
	}
	return f.unplug()
}

// Processes lists the processes of a server's node: "shim", "pause", "container" (those of the tool's actors),
// "resolver".
func (s *Server) Processes(kind string) ([]int, error) {
	f := footprint{dataDir: s.DataDir}
	texts := []string{f.dataDir + "/", f.cgroupRoot()}
	if s.opts.Runtime != nil {
		texts = append(texts, s.opts.Runtime.dir+"/")
	}
	lines, err := processesWith(texts...)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, line := range lines {
		text, command, _ := strings.Cut(strings.TrimPrefix(line, "process "), ": ")
		is := map[string]bool{
			"shim":      strings.Contains(command, "containerd-shim") || strings.Contains(command, "/wherry-shim "),
			"pause":     strings.HasPrefix(command, "/pause"),
			"container": strings.HasPrefix(command, "/tool act"),
			"resolver":  strings.Contains(command, " resolve-names "),
		}
		if pid, err := strconv.Atoi(text); err == nil && is[kind] {
			out = append(out, pid)
		}
	}
	return out, nil
}

// linkOf is the short name that the runtime gives a data folder below /run/wherry.
func linkOf(dataDir string) string {
	entries, _ := os.ReadDir("/run/wherry") // none: there is no such name
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join("/run/wherry", e.Name())); err == nil &&
			strings.HasPrefix(to, dataDir+"/") {
			return e.Name()
		}
	}
	return "no-such-link"
}

// unmountAll unmounts a folder and all below it, the newest mounts first.
func unmountAll(dir string) error {
	mounts, err := mountsWith(" "+dir+" ", " "+dir+"/")
	if err != nil {
		return err
	}
	var errs []error
	for _, line := range slices.Backward(mounts) {
		at := strings.Fields(strings.TrimPrefix(line, "mount "))[4]
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) &&
			!errors.Is(err, syscall.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", at, err))
		}
	}
	return errors.Join(errs...)
}

// removeCgroups removes cgroups, whose processes are dead, by their name.
func removeCgroups(name string) error {
	for range 100 {
		groups, err := cgroupsWith(name)
		if err != nil || len(groups) == 0 {
			return err
		}
		for _, g := range groups {
			removeTree(strings.TrimPrefix(g, "cgroup "))
		}
		time.Sleep(20 * time.Millisecond) // the kernel takes a moment after the last process' end
	}
	return fmt.Errorf("cgroups %s cannot be removed", name)
}

func removeTree(dir string) {
	entries, _ := os.ReadDir(dir) // gone meanwhile
	for _, e := range entries {
		if e.IsDir() {
			removeTree(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir) // tried again by the caller
}

// unplug removes the bridge and its rules, if there are any.
func (f footprint) unplug() error {
	if f.bridge == "" {
		return nil
	}
	if l, err := netlink.LinkByName(f.bridge); err == nil {
		if err := netlink.LinkDel(l); err != nil {
			return err
		}
	}
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	tables, err := conn.ListTables()
	if err != nil {
		return err
	}
	for _, t := range tables {
		if strings.Contains(t.Name, f.bridge) {
			conn.DelTable(t)
		}
	}
	return conn.Flush()
}

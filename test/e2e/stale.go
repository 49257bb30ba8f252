// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A test run that is killed, or that panics because of its -timeout, cannot purge its servers. Every server's folder
// therefore says whose it is and which process it runs in, and the next run removes those without an owner.
const (
	serverPrefix  = "wh-"
	runtimePrefix = "wh-ext-" // of the folder of another runtime that servers are on
	podmanPrefix  = "wh-pod-"
	ownerFile     = "owner.pid"
	serverFile    = "server.pid"
	diskFolder    = "disk"   // where a server's own disk is mounted
	bridgeFile    = "bridge" // the bridge that a runtime's pods are on
)

func writePID(dir, file string, pid int) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(pid)+"\n"), 0o644)
}

// removeStale ends and purges the servers of test runs that are no more.
func removeStale(ctx context.Context, wherry string) error {
	owners, err := filepath.Glob(filepath.Join(os.TempDir(), serverPrefix+"*", ownerFile))
	if err != nil {
		return err
	}
	var errs []error
	var runtimes []string
	for _, owner := range owners {
		if pid, ok := readPID(owner); !ok || running(pid, "") {
			continue
		}
		dir := filepath.Dir(owner)
		if name := filepath.Base(dir); strings.HasPrefix(name, runtimePrefix) || strings.HasPrefix(name, podmanPrefix) {
			runtimes = append(runtimes, dir)
			continue
		}
		data, disk := filepath.Join(dir, "d"), filepath.Join(dir, diskFolder)
		if _, err := os.Stat(disk); err == nil {
			data = filepath.Join(disk, "d")
		}
		if pid, ok := readPID(filepath.Join(dir, serverFile)); ok && running(pid, data) {
			errs = append(errs, end(ctx, pid))
		}
		// One may have been started since a number was written down.
		errs = append(errs, killWith("--data-dir "+data+" "))
		if _, err := os.Stat(filepath.Join(data, "version")); err == nil { // else no server ever ran on it
			if out, err := exec.CommandContext(ctx, wherry, "purge", "--yes", "--runtime-gone",
				"--data-dir", data).CombinedOutput(); err != nil {
				errs = append(errs, fmt.Errorf("remove what an earlier test run left in %s: %w: %s", dir, err, out))
				continue
			}
		}
		_ = unix.Unmount(disk, unix.MNT_DETACH) // most have none
		errs = append(errs, os.RemoveAll(dir))
	}
	for _, dir := range runtimes { // after the servers that are on them
		errs = append(errs, removeRuntime(dir))
	}
	return errors.Join(errs...)
}

// removeRuntime ends what is left of another runtime, and of Docker on it, and removes its folder and its pods' bridge.
func removeRuntime(dir string) error {
	if err := killWith(dir + "/"); err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) { // later ones may lie on earlier ones
		if err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", m.Mountpoint, err)
		}
	}
	if name, err := os.ReadFile(filepath.Join(dir, bridgeFile)); err == nil {
		if link, err := netlink.LinkByName(string(name)); err == nil { // else it is gone
			if err := netlink.LinkDel(link); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}

func readPID(file string) (pid int, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil
}

// running says whether a process runs that has word in its command line; pids are given again to others.
func running(pid int, word string) bool {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(cmdline) > 0 && strings.Contains(string(cmdline), word)
}

// end ends a process that is not our child, and waits until it has.
func end(ctx context.Context, pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // it has ended
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return nil // it has ended
	}
	for running(pid, "") {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

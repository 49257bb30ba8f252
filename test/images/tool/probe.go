// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside is the argument with which probe calls itself in a user namespace of its own.
const inside = "in-a-user-namespace"

// probe tries one thing after the other that a container must not get to do, and prints a line for each: what, and "ok"
// or why not. folder is a folder that others own and that is shown to be read.
func probe(args []string) error {
	if len(args) == 0 {
		return errors.New("probe FOLDER")
	}
	folder := args[0]
	tell := func(what string, err error) {
		if err != nil {
			fmt.Printf("%s: %v\n", what, err)
			return
		}
		fmt.Printf("%s: ok\n", what)
	}
	tell("unmount "+filepath.Dir(folder), unix.Unmount(filepath.Dir(folder), unix.MNT_DETACH))
	tell("unmount "+folder, unix.Unmount(folder, unix.MNT_DETACH))
	tell("remount to be written", unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	tell("write", os.WriteFile(filepath.Join(folder, "probed"), nil, 0o644))
	if slices.Contains(args, inside) {
		return nil
	}
	for _, d := range []struct {
		what         string
		kind         uint32
		major, minor uint32
	}{
		{"disk (virtio)", unix.S_IFBLK, 254, 0}, {"disk (scsi)", unix.S_IFBLK, 8, 0},
		{"disk (nvme)", unix.S_IFBLK, 259, 0}, {"disk (loop)", unix.S_IFBLK, 7, 0},
		{"memory", unix.S_IFCHR, 1, 1}, {"ports", unix.S_IFCHR, 1, 4}, {"kernel's log", unix.S_IFCHR, 1, 11},
		{"kvm", unix.S_IFCHR, 10, 232}, {"fuse", unix.S_IFCHR, 10, 229},
	} {
		tell("device "+d.what, device(d.kind, unix.Mkdev(d.major, d.minor)))
	}
	tell("mount", unix.Mount("none", folder, "tmpfs", 0, ""))
	tell("bind", unix.Mount(folder, "/tmp", "", unix.MS_BIND, ""))
	tell("namespace of mounts", unix.Unshare(unix.CLONE_NEWNS))
	for _, name := range []string{"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
		"/sys/kernel/uevent_helper", "/sys/fs/cgroup/devices/release_agent", "/sys/fs/cgroup/memory/release_agent",
		"/sys/fs/cgroup/cgroup.procs", "/proc/kcore", "/proc/sys/vm/drop_caches"} {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		tell("open "+name, errors.Join(err, closed(f)))
	}
	tell("load a module", unix.InitModule([]byte("x"), ""))
	tell("set the clock", unix.Settimeofday(&unix.Timeval{}))
	tell("the machine's name", unix.Sethostname([]byte("probed")))
	for fd := range 64 {
		name := fmt.Sprintf("/proc/self/fd/%d", fd)
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			to, _ := os.Readlink(name)
			tell("descriptor of the folder "+to, nil)
		}
	}
	return probeInside(folder, tell)
}

// probeInside goes on as root of a user namespace, if there may be one.
func probeInside(folder string, tell func(string, error)) error {
	self := exec.Command("/proc/self/exe", "probe", folder, inside)
	self.Stdout, self.Stderr = os.Stdout, os.Stderr
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	groups := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	self.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids,
		GidMappings: groups}
	if err := self.Run(); err != nil {
		tell("user namespace", err)
	}
	return nil
}

// device makes a device's node and opens it.
func device(kind uint32, dev uint64) error {
	const name = "/tmp/probed"
	_ = os.Remove(name)
	if err := unix.Mknod(name, kind|0o600, int(dev)); err != nil {
		return err
	}
	f, err := os.Open(name)
	return errors.Join(err, closed(f))
}

func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// swap exchanges a and b for ever, so that who looks at either finds now this, now that.
func swap(args []string) error {
	if len(args) != 2 {
		return errors.New("swap A B")
	}
	fmt.Println("swapping")
	for {
		if err := unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
}

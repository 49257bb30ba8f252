// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// space is a kind of namespace.
type space struct {
	flag, file string
	kind       int
}

// spaces are the kinds of namespaces, in the order in which they are to be entered: a user namespace gives the right to
// the others, mount comes last.
func spaces() []space {
	return []space{
		{"U,user", "user", unix.CLONE_NEWUSER}, {"C,cgroup", "cgroup", unix.CLONE_NEWCGROUP},
		{"i,ipc", "ipc", unix.CLONE_NEWIPC},
		{"u,uts", "uts", unix.CLONE_NEWUTS}, {"n,net", "net", unix.CLONE_NEWNET}, {"p,pid", "pid", unix.CLONE_NEWPID},
		{"m,mount", "mnt", unix.CLONE_NEWNS},
	}
}

// nsenter runs a command in the namespaces of another process.
func (r runner) nsenter(c *applet.Call) error {
	c.Posix()
	target := c.Int("t,target", "PID", 0, "the process")
	all := c.Bool("a,all", "all its namespaces but that of users")
	want := map[string]*bool{}
	for _, s := range spaces() {
		want[s.file] = c.Bool(s.flag, "enter its "+s.file+" namespace")
	}
	dir := c.Bool("w,wd", "go to its folder")
	c.Bool("F,no-fork", "does nothing")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	if *target <= 0 {
		return applet.Usage("-t PID is missing")
	}
	if len(c.Args) == 0 {
		c.Args = []string{"sh"}
	}
	proc := "/proc/" + strconv.Itoa(*target)
	if _, err := os.Stat(proc); err != nil {
		return fmt.Errorf("process %d: %w", *target, err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	var folder *os.File
	if *dir {
		if folder, err = os.Open(proc + "/cwd"); err != nil {
			return err
		}
	}
	namespaces, err := openNamespaces(*target, func(s space) bool {
		return *want[s.file] || *all && s.file != "user" && !same(proc, s.file)
	})
	if err != nil {
		return err
	}
	runtime.LockOSThread() // namespaces are a thread's; the command is started by this one
	for _, n := range namespaces {
		if err := n.enter(); err != nil {
			return err
		}
	}
	if folder != nil {
		if err := unix.Fchdir(int(folder.Fd())); err != nil {
			return err
		}
	}
	return r.inside(c, self, *want["pid"] || *all)
}

// namespace is an open namespace of a process.
type namespace struct {
	space
	fd int
}

// openNamespaces opens those namespaces of a process that are wanted, in the order in which they are to be entered.
func openNamespaces(pid int, wanted func(space) bool) (list []namespace, err error) {
	for _, s := range spaces() {
		if !wanted(s) {
			continue
		}
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, s.file), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil,
				fmt.Errorf("the %s namespace of process %d cannot be opened (needs CAP_SYS_PTRACE for another user's process): %w", s.file, pid, err)
		}
		list = append(list, namespace{s, fd})
	}
	return list, nil
}

// enter takes this thread into a namespace.
func (n namespace) enter() error {
	if n.kind == unix.CLONE_NEWNS || n.kind == unix.CLONE_NEWUSER {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and folder are shared among threads
			return err
		}
	}
	err := unix.Setns(n.fd, n.kind)
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("the %s namespace may not be entered (needs CAP_SYS_ADMIN, and CAP_SYS_CHROOT for mnt): %w",
			n.file, err)
	case err != nil:
		return fmt.Errorf("enter the %s namespace: %w", n.file, err)
	}
	return nil
}

// inside starts the command; a PID namespace is entered by children only.
func (r runner) inside(c *applet.Call, self *os.File, fork bool) error {
	path, err := r.find(c.Args[0])
	if err != nil {
		return err
	}
	own := path == "/proc/self/exe"
	if !fork {
		if own {
			return execFile(self, c.Args)
		}
		return r.become(c, c.Args)
	}
	cmd, err := r.command(c.Args)
	if err != nil {
		return err
	}
	if own {
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", 3)
		cmd.ExtraFiles = []*os.File{self}
	}
	return ended(cmd.Run())
}

// same reports whether this process is in that namespace already.
func same(proc, file string) bool {
	a, err1 := os.Readlink(proc + "/ns/" + file)
	b, err2 := os.Readlink("/proc/self/ns/" + file)
	return err1 == nil && err2 == nil && a == b
}

// fexecve replaces this process by a program that is an open file.
func fexecve(fd int, argv, env []string) error {
	args, err := pointers(argv)
	if err != nil {
		return err
	}
	vars, err := pointers(env)
	if err != nil {
		return err
	}
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&vars[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

func pointers(list []string) ([]*byte, error) {
	out := make([]*byte, len(list)+1)
	for i, s := range list {
		p, err := unix.BytePtrFromString(strings.ReplaceAll(s, "\x00", ""))
		if err != nil {
			return nil, err
		}
		out[i] = p
	}
	return out, nil
}

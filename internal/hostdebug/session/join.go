// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// held is a target's process, held by descriptors: a later process with the same ID is never mistaken for it.
type held struct {
	pid        int
	pidfd      int
	root       *os.File
	mount      *os.File
	namespaces map[specs.LinuxNamespaceType]*os.File
}

// kinds are the namespaces that a debugger joins, by the kernel's names of them.
func kinds() map[specs.LinuxNamespaceType]string {
	return map[specs.LinuxNamespaceType]string{specs.PIDNamespace: "pid", specs.NetworkNamespace: "net",
		specs.IPCNamespace: "ipc", specs.UTSNamespace: "uts", specs.UserNamespace: "user"}
}

// hold opens descriptors of a process.
func hold(pid int) (*held, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil, fmt.Errorf("process %d has just ended", pid)
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	h := &held{pid: pid, pidfd: fd, namespaces: map[specs.LinuxNamespaceType]*os.File{}}
	if err := h.open(); err != nil {
		h.close()
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("process %d cannot be looked into: %w", pid, err)
		}
		return nil, fmt.Errorf("process %d has just ended: %w", pid, err)
	}
	return h, nil
}

func (h *held) open() error {
	dir := filepath.Join("/proc", strconv.Itoa(h.pid))
	for kind, name := range kinds() {
		f, err := os.Open(filepath.Join(dir, "ns", name))
		if err != nil {
			return err
		}
		h.namespaces[kind] = f
	}
	var err error
	if h.mount, err = os.Open(filepath.Join(dir, "ns/mnt")); err != nil {
		return err
	}
	if h.root, err = os.OpenFile(filepath.Join(dir, "root"), unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return err
	}
	// The process is still alive, so all of this is its own and not that of a later process with the same ID.
	if err := unix.PidfdSendSignal(h.pidfd, 0, nil, 0); err != nil {
		return err
	}
	same, err := sameAsOurs(h.namespaces[specs.UserNamespace], "user")
	if err == nil && same { // to join one's own is refused
		err = h.namespaces[specs.UserNamespace].Close()
		delete(h.namespaces, specs.UserNamespace)
	}
	return err
}

// sameAsOurs reports whether a namespace is the one that this process is in.
func sameAsOurs(f *os.File, name string) (bool, error) {
	theirs, err := f.Stat()
	if err != nil {
		return false, err
	}
	ours, err := os.Stat("/proc/self/ns/" + name)
	if err != nil {
		return false, err
	}
	return os.SameFile(theirs, ours), nil
}

// paths are the files by which a child of this process finds the namespaces.
func (h *held) paths() map[specs.LinuxNamespaceType]string {
	out := map[specs.LinuxNamespaceType]string{}
	for kind, f := range h.namespaces {
		out[kind] = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	}
	return out
}

// network are those of them that a session joins which is in the pod's network alone: it sees no processes.
func (h *held) network() map[specs.LinuxNamespaceType]string {
	out := h.paths()
	delete(out, specs.PIDNamespace)
	delete(out, specs.IPCNamespace)
	return out
}

// ownsNetwork reports whether the network namespace belongs to the user namespace that is joined.
func (h *held) ownsNetwork() bool {
	users := h.namespaces[specs.UserNamespace]
	if users == nil {
		return true
	}
	owner, err := unix.IoctlRetInt(int(h.namespaces[specs.NetworkNamespace].Fd()), unix.NS_GET_USERNS)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(owner), "owner")
	defer f.Close()
	theirs, err := f.Stat()
	if err != nil {
		return false
	}
	own, err := users.Stat()
	return err == nil && os.SameFile(theirs, own)
}

// rootUser is who the target's root is on this machine.
func (h *held) rootUser() (uid, gid int, err error) {
	if h.namespaces[specs.UserNamespace] == nil {
		return 0, 0, nil
	}
	dir := filepath.Join("/proc", strconv.Itoa(h.pid))
	if uid, err = rootOf(filepath.Join(dir, "uid_map")); err == nil {
		gid, err = rootOf(filepath.Join(dir, "gid_map"))
	}
	return uid, gid, err
}

func rootOf(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	id, ok := mappedRoot(string(text))
	if !ok {
		return 0, errors.New("its user namespace has no root")
	}
	return id, nil
}

func (h *held) close() {
	unix.Close(h.pidfd)
	for _, f := range h.namespaces {
		f.Close()
	}
	for _, f := range []*os.File{h.root, h.mount} {
		if f != nil {
			f.Close()
		}
	}
}

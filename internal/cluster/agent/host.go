// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// spaces are the namespaces of the machine that its sessions run in, by the kernel's names; that of mounts is the last,
// for the others are found in the agent's own.
func spaces() []string { return []string{"cgroup", "net", "uts", "ipc", "mnt"} }

// Place is where sessions run: in the namespaces of the machine itself.
type Place struct {
	// Here keeps them in the agent's own, for one that is started by hand, not in a container.
	Here bool
	// Kit is what they are made with; nil: each unpacks what the main program carries.
	Kit *Kit
}

// do does something on a thread in the machine's own namespaces. What that starts is in them too. An agent that is in
// them itself goes nowhere.
func (p Place) do(what func() error) error {
	if p.Here {
		return what()
	}
	return onOwnThread(func() error {
		if err := enterMachine(); err != nil {
			return err
		}
		return what()
	})
}

// onOwnThread does something on a thread that ends with it, and is used for nothing else. It is never the process's
// first one: that does not end, and what others see of the process in /proc is that thread's namespaces.
func onOwnThread(what func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			err := onOwnThread(what) // which has another one, as this is held
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- what() // never unlocked
	}()
	return <-done
}

func enterMachine() error {
	if os.Getpid() == 1 {
		return errors.New("the agent sees no process but its own: its pod needs hostPID: true")
	}
	machine, err := machineProcess("/proc", os.Getppid())
	if err != nil {
		return err
	}
	others := map[string]*os.File{}
	defer func() {
		for _, f := range others {
			f.Close()
		}
	}()
	for _, name := range spaces() {
		f, err := otherSpace(machine, name)
		if err != nil {
			return fmt.Errorf("the machine's namespaces: %w", err)
		}
		if f != nil {
			others[name] = f
		}
	}
	if len(others) == 0 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("the machine's namespaces: %w", err)
	}
	for _, name := range spaces() {
		f := others[name]
		if f == nil {
			continue
		}
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return fmt.Errorf("the machine's %s namespace: %w (the agent's pod needs privileged: true)", name, err)
		}
	}
	return nil
}

// machineProcess is the folder of a process that is in the machine's own namespaces: the first one or, where that has a
// capability which the container runtime lacks and is closed to what that starts, the runtime's own by which the agent
// was started.
func machineProcess(proc string, parent int) (string, error) {
	var errs []error
	for _, pid := range []int{1, parent} {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		f, err := os.Open(filepath.Join(dir, "ns/mnt"))
		if err == nil {
			return dir, f.Close()
		}
		errs = append(errs, err)
	}
	return "",
		fmt.Errorf("the machine's namespaces: %w (the agent's pod needs hostPID: true and privileged: true; for "+
			"an agent that is not in a container there is --in-place)", errors.Join(errs...))
}

// otherSpace is a namespace of a process of the machine's; nil if the agent is in it.
func otherSpace(machine, name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(machine, "ns", name))
	if err != nil {
		return nil, err
	}
	theirs, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	ours, err := os.Stat(filepath.Join("/proc/thread-self/ns", name))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if os.SameFile(theirs, ours) {
		return nil, f.Close()
	}
	return f, nil
}

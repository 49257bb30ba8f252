// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/containerd/go-runc"
	"golang.org/x/sys/unix"
)

// children knows the ends of all child processes: of those that were started here, and of those that became children
// because their parent has ended, as runc does when it has started a container (the shim is a subreaper).
//
// It is go-runc's monitor too. Nobody else may wait for a child.
type children struct {
	// starting is held for reading while a process is forked and noted: no end is collected between the two.
	starting sync.RWMutex

	mu      sync.Mutex
	waiting map[int]chan runc.Exit // buffered for one
	// expecting counts who may adopt a process that has ended already; ends are kept for them in unknown.
	expecting int
	unknown   map[int]runc.Exit
}

func newChildren() *children {
	return &children{waiting: map[int]chan runc.Exit{}, unknown: map[int]runc.Exit{}}
}

// Start is part of runc.ProcessMonitor.
func (c *children) Start(cmd *exec.Cmd) (chan runc.Exit, error) {
	c.starting.RLock()
	defer c.starting.RUnlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := make(chan runc.Exit, 1)
	c.mu.Lock()
	c.waiting[cmd.Process.Pid] = end
	c.mu.Unlock()
	return end, nil
}

// StartLocked is part of runc.ProcessMonitor: the thread that starts the process lives as long as the process does, so
// that the process is killed with the shim and not before.
func (c *children) StartLocked(cmd *exec.Cmd) (chan runc.Exit, error) {
	type started struct {
		end chan runc.Exit
		err error
	}
	begun := make(chan started)
	out := make(chan runc.Exit, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		end, err := c.Start(cmd)
		begun <- started{end, err}
		if err == nil {
			out <- <-end
		}
	}()
	s := <-begun
	return out, s.err
}

// Wait is part of runc.ProcessMonitor.
func (c *children) Wait(cmd *exec.Cmd, end chan runc.Exit) (int, error) {
	e := <-end
	_ = cmd.Wait() // gives back what the command holds; the process itself is gone, which it says
	return e.Status, nil
}

// expect announces that a process will be adopted, before anything is done that could start it. The returned function
// takes that back.
func (c *children) expect() (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expecting++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.expecting--; c.expecting == 0 {
			clear(c.unknown)
		}
	}
}

// adopt gives the end of a process that somebody else has started, and which is, or becomes, a child. It may have ended
// since expect was called.
func (c *children) adopt(pid int) <-chan runc.Exit {
	end := make(chan runc.Exit, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ended := c.unknown[pid]; ended {
		delete(c.unknown, pid)
		end <- e
		return end
	}
	c.waiting[pid] = end
	return end
}

// collect takes the ends of all children that have ended. To be called at every SIGCHLD, by one at a time.
func (c *children) collect() {
	c.starting.Lock()
	defer c.starting.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		c.ended(runc.Exit{Timestamp: time.Now(), Pid: pid, Status: exitStatus(status)})
	}
}

func (c *children) ended(e runc.Exit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end, waited := c.waiting[e.Pid]; waited {
		delete(c.waiting, e.Pid)
		end <- e
	} else if c.expecting > 0 {
		c.unknown[e.Pid] = e
	}
}

// exitStatus is a shell's exit code: 128 and the signal's number for one that was killed.
func exitStatus(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

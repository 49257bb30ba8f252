// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/go-runc"
	"github.com/opencontainers/runtime-spec/specs-go"
)

const (
	failedStatus = 255                    // of a process that could not be started
	killedStatus = 128 + int(deathSignal) // of one that was killed
)

// launch is what starting a process by runc needs.
type launch struct {
	container *container
	process   *process
	children  *children
	pidFile   string
	// run has runc start the process, and returns when it runs.
	run func(io runc.IO, console runc.ConsoleSocket) error
}

// start starts the process, whose streams are open. What it gives is its end: the process is a child of this one by
// then.
func (l launch) start() (end <-chan runc.Exit, err error) {
	done := l.children.expect()
	defer done()
	var (
		io     = l.process.io
		socket *runc.Socket
		given  runc.IO
		sent   runc.ConsoleSocket
		master func() (*os.File, error)
	)
	if l.process.streams.terminal {
		if socket, err = runc.NewTempConsoleSocket(); err != nil {
			return nil, fmt.Errorf("socket for the terminal: %w", err)
		}
		defer socket.Close()
		sent, master = socket, terminalOf(l.process, socket)
	} else {
		given = io
		defer io.given()
	}
	if err := l.run(given, sent); err != nil {
		return nil, err
	}
	pid, err := runc.ReadPidFile(l.pidFile)
	if err != nil {
		return nil, fmt.Errorf("number of the process: %w", err)
	}
	if socket != nil {
		tty, err := master()
		if err == nil {
			err = io.joinTerminal(tty)
		}
		if err != nil {
			return nil, errors.Join(err, l.abandon(pid))
		}
	}
	l.process.started(pid)
	return l.children.adopt(pid), nil
}

// abandon ends a process that was started and cannot be used.
func (l launch) abandon(pid int) error {
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

// start starts a container.
func (c *container) start(ctx context.Context, children *children) (<-chan runc.Exit, error) {
	r := c.runc(logFile)
	pid := filepath.Join(c.bundle, pidFile)
	l := launch{container: c, process: c.init, children: children, pidFile: pid}
	l.run = func(io runc.IO, console runc.ConsoleSocket) error {
		if c.restore.checkpoint != "" {
			_, err := r.Restore(ctx, c.id, c.bundle, c.restoreOptions(io, pid))
			return c.failure("OCI runtime restore failed", logFile, err)
		}
		_, err := r.Run(ctx, c.id, c.bundle, &runc.CreateOpts{
			IO: io, PidFile: pid, ConsoleSocket: console, Detach: true,
			NoPivot: c.options.GetNoPivotRoot(), NoNewKeyring: c.options.GetNoNewKeyring(),
		})
		return c.failure("OCI runtime create failed", logFile, err)
	}
	end, err := l.start()
	if err != nil {
		// runc cleans up after itself; what it could not is seen to when the container is deleted.
		c.init.never(failedStatus)
	}
	return end, err
}

func (c *container) restoreOptions(io runc.IO, pid string) *runc.RestoreOpts {
	work := c.options.GetCriuWorkPath()
	if work == "" {
		work = filepath.Join(c.bundle, "work")
	}
	return &runc.RestoreOpts{
		CheckpointOpts: runc.CheckpointOpts{
			ImagePath: c.restore.checkpoint, WorkDir: work, ParentPath: c.restore.parent,
		},
		IO: io, PidFile: pid, NoPivot: c.options.GetNoPivotRoot(), Detach: true, NoSubreaper: true,
	}
}

// exec starts a process in the container.
func (c *container) exec(ctx context.Context, p *process, what specs.Process, children *children) (<-chan runc.Exit,
	error) {
	left, err := c.enter()
	if err != nil {
		return nil, err
	}
	defer left()
	// Each has a log of its own: many are started at the same time, and what went wrong is read from it.
	log := p.id + "-log.json"
	pid := filepath.Join(c.bundle, p.id+".pid")
	defer os.Remove(pid)
	defer os.Remove(filepath.Join(c.bundle, log))
	l := launch{container: c, process: p, children: children, pidFile: pid}
	run := context.WithoutCancel(ctx) // what is begun has an end, which is reported
	l.run = func(io runc.IO, console runc.ConsoleSocket) error {
		err := c.runc(log).Exec(run, c.id, what, &runc.ExecOpts{
			IO: io, PidFile: pid, ConsoleSocket: console, Detach: true,
		})
		return c.failure("OCI runtime exec failed", log, err)
	}
	if err := p.open(ctx); err != nil {
		p.never(failedStatus)
		return nil, err
	}
	end, err := l.start()
	if err != nil {
		p.never(failedStatus)
		return nil, err
	}
	p.endIfDropped()
	return end, nil
}

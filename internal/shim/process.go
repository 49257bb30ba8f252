// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/errdefs"
	"github.com/containerd/go-runc"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// process is a container's first process, or one that is executed in it. What it is now follows from what has happened:
// it is created until it has a number, running until it has an end.
type process struct {
	id      string // that of the exec; empty for the first process
	streams streams
	what    *specs.Process // of an exec

	begun    atomic.Bool   // its start was asked for
	tried    chan struct{} // closed when what was begun has come to something: it runs, or never will
	dropped  chan struct{} // closed when nobody waits for its start any more
	dropping sync.Once     // closes it

	mu   sync.Mutex
	pid  int
	fd   *os.File // the process itself, whoever has its number later
	io   *stdio
	size unix.Winsize // of the terminal, if it was given
	// master is the terminal, closed with io.
	master *os.File
	end    runc.Exit     // once ended is closed
	ended  chan struct{} // closed at its end, or when it will never start
}

func newProcess(id string, s streams) *process {
	return &process{
		id: id, streams: s, ended: make(chan struct{}), tried: make(chan struct{}), dropped: make(chan struct{}),
	}
}

// number is the process's, 0 before it is started.
func (p *process) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// over reports whether it has ended, and how.
func (p *process) over() (runc.Exit, bool) {
	select {
	case <-p.ended:
		return p.end, true
	default:
		return runc.Exit{}, false
	}
}

// status is the process's state in containerd's words.
func (p *process) status(paused bool) task.Status {
	if _, over := p.over(); over {
		return task.Status_STOPPED
	}
	switch {
	case p.number() == 0:
		return task.Status_CREATED
	case paused:
		return task.Status_PAUSED
	}
	return task.Status_RUNNING
}

// begin lets one caller start the process, who says by the function that it gives when that has come to something.
func (p *process) begin() (tried func(), first bool) {
	if !p.begun.CompareAndSwap(false, true) {
		return nil, false
	}
	return func() { close(p.tried) }, true
}

// beginning reports whether the process is being started.
func (p *process) beginning() bool {
	select {
	case <-p.tried:
		return false
	default:
		return p.begun.Load()
	}
}

// awaitStart waits for what has been begun: a process that is being started is neither created nor running. A client
// that sees it as created would start it again.
func (p *process) awaitStart(ctx context.Context) error {
	if !p.beginning() {
		return nil
	}
	select {
	case <-p.tried:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop says that the process is not wanted any more, if it does not run yet. A call that is cancelled in containerd is
// not in its shim: a start that waits for containerd to open its ends of the streams hears of it by this.
func (p *process) drop() {
	p.dropping.Do(func() { close(p.dropped) })
}

// endIfDropped kills a process that has been started and was dropped until then. Whoever kills a process drops it, and
// then signals it; whoever starts one notes its number, and then calls this: under the lock either the one finds the
// number, or the other finds it dropped. A process that has ended by itself needs no signal.
func (p *process) endIfDropped() {
	select {
	case <-p.dropped:
		_ = p.signal(uint32(deathSignal))
	default:
	}
}

// open opens the process's streams, before it is started, if containerd opens its ends before ctx ends or the process
// is dropped.
func (p *process) open(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.dropped:
			cancel()
		case <-ctx.Done():
		}
	}()
	io, err := openStdio(ctx, p.streams)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.io = io
	return nil
}

// started notes what a process that has just been started is.
func (p *process) started(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid = pid
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		p.fd = os.NewFile(uintptr(fd), "pidfd")
	}
}

// finish notes the end.
func (p *process) finish(e runc.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd != nil {
		_ = p.fd.Close()
	}
	p.end = e
	close(p.ended)
}

// never notes that it was not started, and never will be. Whoever reads its output sees the end of it.
func (p *process) never(status int) {
	if p.io != nil {
		p.io.given()
		p.io.close()
	}
	p.finish(runc.Exit{Timestamp: time.Now(), Status: status})
}

// wait waits for the end.
func (p *process) wait(ctx context.Context) (runc.Exit, error) {
	select {
	case <-p.ended:
		return p.end, nil
	case <-ctx.Done():
		return runc.Exit{}, ctx.Err()
	}
}

// signal sends a signal to the process itself. A process that is not there is not found.
func (p *process) signal(sig uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, over := p.over(); over {
		return fmt.Errorf("process already finished: %w", errdefs.ErrNotFound)
	}
	if p.fd == nil {
		return fmt.Errorf("process is not running: %w", errdefs.ErrFailedPrecondition)
	}
	err := unix.PidfdSendSignal(int(p.fd.Fd()), unix.Signal(sig), nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process already finished: %w", errdefs.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("signal %d: %w", sig, err)
	}
	return nil
}

// closeStdin ends the input.
func (p *process) closeStdin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.io == nil {
		return nil
	}
	return p.io.closeStdin()
}

// resize sets the terminal's size, now or when there is one. Without a terminal there is nothing to set.
func (p *process) resize(width, height uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = unix.Winsize{Col: uint16(width), Row: uint16(height)}
	if p.master == nil {
		return nil
	}
	return setSize(p.master, p.size)
}

// hasTerminal notes the process's terminal.
func (p *process) hasTerminal(master *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.master = master
	if p.size == (unix.Winsize{}) {
		return nil
	}
	return setSize(master, p.size)
}

// release gives the streams back, when the terminal's output has been fetched.
func (p *process) release() {
	p.mu.Lock()
	io := p.io
	p.mu.Unlock()
	if io == nil {
		return
	}
	io.drain()
	io.close()
}

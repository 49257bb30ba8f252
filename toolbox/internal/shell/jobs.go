// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// state is what a process or a job does.
type state int

const (
	running state = iota
	stopped
	ended
)

// process is a program that the shell started.
type process struct {
	pid    int
	state  state
	status syscall.WaitStatus // how it ended, or what stopped it
}

// job is the processes of one line, or of one command with &.
type job struct {
	number     int // 0 while it has been in the foreground only
	group      int // its process group; 0 where there is no job control
	procs      []*process
	text       string
	background bool
	told       state
	modes      *unix.Termios  // the terminal's when it was stopped
	of         *interp.Runner // the subshell that put it into the background; nil: the shell itself
}

// state is that of the whole job: it is stopped when nothing of it runs and something is stopped.
func (b *job) state() state {
	now := ended
	for _, p := range b.procs {
		if p.state < now {
			now = p.state
		}
	}
	return now
}

// stands tells whether a job is stopped and stays so: nothing of it was continued or killed just now, which is known
// only once its watcher has seen it. jobs.mu is held, so that no id is anybody else's.
func (b *job) stands() bool {
	return b.state() == stopped && !slices.ContainsFunc(b.procs, func(p *process) bool {
		now, ok := readStat(fmt.Sprintf("/proc/%d", p.pid))
		return p.state == stopped && ok && now.state != "T"
	})
}

func (b *job) last() *process { return b.procs[len(b.procs)-1] }

// jobs knows the processes the shell waits for, and what Ctrl-C means at the moment.
type jobs struct {
	mu      sync.Mutex
	changed *sync.Cond         // any process's state, or something that ends a wait
	running map[int]time.Time  // every child that is not reaped yet, and since when
	cancel  context.CancelFunc // of the line that is run
	list    []*job             // those with a number, the one last stopped or started at the end
	past    []*job             // those that were waited for, which may be asked for once more
	front   *job               // what runs in the foreground
	text    string             // of the line that is run

	stopping bool // the line was cancelled because what it ran was stopped

	tty   *os.File // with job control: the terminal; nil without
	own   int      // with job control: the shell's process group
	modes *unix.Termios
}

func newJobs() *jobs {
	j := &jobs{running: map[int]time.Time{}}
	j.changed = sync.NewCond(&j.mu)
	return j
}

// control begins job control, if the terminal is the shell's to give away.
func (j *jobs) control(tty *os.File) {
	owner, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil || owner != unix.Getpgrp() {
		return
	}
	modes, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return
	}
	j.tty, j.own, j.modes = tty, owner, modes
}

// begin returns the context of a line.
func (j *jobs) begin() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	j.mu.Lock()
	j.cancel = cancel
	j.mu.Unlock()
	return ctx, cancel
}

// interrupt is Ctrl-C: running programs got it as well and decide for themselves; what the shell does itself ends.
func (j *jobs) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.changed.Broadcast()
	if j.front == nil {
		if j.cancel != nil {
			j.cancel()
		}
		return
	}
	for _, p := range j.front.procs { // one that was not there yet when the terminal sent it
		if p.state == running && time.Since(j.running[p.pid]) < 100*time.Millisecond {
			_ = unix.Kill(p.pid, unix.SIGINT)
		}
	}
}

// suspend is Ctrl-Z that came before the terminal was the job's that had just been started: it is meant for that one.
func (j *jobs) suspend() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tty != nil && j.front != nil && j.front.group != 0 {
		_ = unix.Kill(-j.front.group, unix.SIGTSTP) // it may have ended just now
	}
}

// strike ends the line, a program of which died of Ctrl-C. What the line started about then may have come too late to
// be sent it.
func (j *jobs) strike(b *job) {
	if j.cancel == nil {
		return
	}
	j.cancel()
	j.catchUp(b, unix.SIGINT)
}

// catchUp sends a job's programs that were started just now what the terminal sent the others.
func (j *jobs) catchUp(b *job, sig unix.Signal) {
	for _, p := range b.procs {
		if p.state == running && time.Since(j.running[p.pid]) < time.Second {
			_ = unix.Kill(p.pid, sig)
		}
	}
}

// stop ends the line that is run: a program of it died of Ctrl-C.
func (j *jobs) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		j.cancel()
	}
}

// start starts a program, unless Ctrl-C came before: in the foreground if text is empty. Its id is known before the
// reaper may see its end.
func (j *jobs) start(ctx context.Context, cmd *exec.Cmd, text string) (*job, *process, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	b := &job{text: text, background: true}
	if text == "" {
		if b = j.front; b == nil {
			b = &job{text: j.text}
		}
	}
	if j.tty != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: b.group}
	}
	if err := j.launch(cmd); err != nil {
		return nil, nil, err
	}
	p := &process{pid: cmd.Process.Pid}
	j.running[p.pid] = time.Now()
	if slices.ContainsFunc(b.procs,
		func(o *process) bool { return o.state == stopped && o.status.StopSignal() == unix.SIGTSTP }) {
		_ = unix.Kill(p.pid, unix.SIGTSTP) // the others were stopped before this one was there
	}
	if b.procs = append(b.procs, p); j.tty != nil && b.group == 0 {
		b.group = p.pid
	}
	switch {
	case b.background:
		j.number(b)
	case j.front == nil:
		j.front = b
		j.terminal(b.group)
	}
	go j.watch(b, p)
	return b, p, nil
}

// hangUp ends what is stopped when the shell leaves: nobody could continue it.
func (j *jobs) hangUp() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.list {
		if b.group != 0 && b.state() == stopped {
			_ = unix.Kill(-b.group, unix.SIGHUP) // it may have ended just now
			_ = unix.Kill(-b.group, unix.SIGCONT)
		}
	}
}

// number puts a job into the list, as the current one.
func (j *jobs) number(b *job) {
	if b.number == 0 {
		for _, o := range j.list {
			b.number = max(b.number, o.number)
		}
		b.number++
	}
	j.forget(b)
	j.list = append(j.list, b)
}

func (j *jobs) forget(b *job) {
	j.list = slices.DeleteFunc(j.list, func(o *job) bool { return o == b })
}

// terminal gives the terminal to a process group. Whoever does so from the background is stopped by SIGTTOU, unless the
// signal is held back; to ignore it would not do, since programs inherit that.
func (j *jobs) terminal(group int) {
	if j.tty == nil || group == 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var hold, old unix.Sigset_t
	hold.Val[0] = 1 << (unix.SIGTTOU - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &hold, &old); err != nil {
		return
	}
	_ = unix.IoctlSetPointerInt(int(j.tty.Fd()), unix.TIOCSPGRP, group) // a group that has just ended needs no terminal
	if group == j.own {
		_ = unix.IoctlSetTermios(int(j.tty.Fd()), unix.TCSETSW, j.modes)
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}

// watch follows a process until it has ended. It looks before it reaps, so that nobody meets an id that is not valid
// any more.
func (j *jobs) watch(b *job, p *process) {
	look, take := unix.WEXITED, 0
	if j.tty != nil { // without job control a stopped program is one that takes its time
		look, take = unix.WEXITED|unix.WSTOPPED|unix.WCONTINUED, unix.WUNTRACED|unix.WCONTINUED
	}
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, look|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		j.mu.Lock()
		var status unix.WaitStatus
		got, err := unix.Wait4(p.pid, &status, unix.WNOHANG|take, nil)
		switch {
		case err != nil:
			p.state = ended // somebody else reaped it
		case got != p.pid:
		case status.Stopped():
			p.state, p.status = stopped, syscall.WaitStatus(status)
		case status.Continued():
			p.state = running
		default:
			p.state, p.status = ended, syscall.WaitStatus(status)
		}
		if p.state == ended {
			delete(j.running, p.pid)
		}
		j.settle(b, p)
		done := p.state == ended
		j.mu.Unlock()
		if done {
			return
		}
	}
}

// settle draws the consequences of a process's new state.
func (j *jobs) settle(b *job, p *process) {
	defer j.changed.Broadcast()
	if j.front != b {
		return
	}
	if s := p.status.StopSignal(); p.state == stopped && (s == unix.SIGTTIN || s == unix.SIGTTOU) && b.group != 0 {
		// It used the terminal before it was given it.
		if owner, err := unix.IoctlGetInt(int(j.tty.Fd()), unix.TIOCGPGRP); err == nil && owner == b.group {
			p.state = running
			_ = unix.Kill(p.pid, unix.SIGCONT)
			return
		}
	}
	if p.state == ended && p.status.Signaled() && p.status.Signal() == unix.SIGINT {
		j.strike(b)
	}
	if p.state == stopped && p.status.StopSignal() == unix.SIGTSTP {
		j.catchUp(b, unix.SIGTSTP)
	}
	now := b.state()
	if now == running {
		return
	}
	j.front = nil
	if now == stopped && j.tty != nil {
		b.modes, _ = unix.IoctlGetTermios(int(j.tty.Fd()), unix.TCGETS)
		b.background = true
		j.number(b)
		b.told = stopped
		fmt.Fprintf(os.Stderr, "\n%s\n", j.line(b, false))
		if j.stopping = j.cancel != nil; j.stopping {
			j.cancel()
		}
	} else if now == ended {
		j.forget(b)
	}
	j.terminal(j.own)
}

// await waits until a program in the foreground has ended or is stopped.
func (j *jobs) await(p *process) (state, syscall.WaitStatus) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for p.state == running {
		j.changed.Wait()
	}
	return p.state, p.status
}

// adopt reaps the orphans that come to the first process of a container.
func (j *jobs) adopt() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for range died {
			j.reap()
		}
	}()
}

func (j *jobs) reap() {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	defer j.changed.Broadcast()
	for _, d := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(d), "%d", &pid); err != nil || pid == 1 {
			continue
		}
		j.mu.Lock()
		if _, ours := j.running[pid]; !ours {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // fails for all that are not dead children
		}
		j.mu.Unlock()
	}
}

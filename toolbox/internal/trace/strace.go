// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// tracer is one run of strace.
type tracer struct {
	out      io.Writer
	names    map[uint64]string
	only     map[string]bool // nil is all
	size     int             // of texts that are shown
	clock    bool            // show the time of day
	took     bool            // show how long calls took
	summary  bool
	children bool
	child    int // the command that strace started

	mu    sync.Mutex // of what is printed and counted: a signal ends it all in between
	tasks map[int]*task
	many  bool
	calls map[string]*stat
}

// task is a thread that is traced.
type task struct {
	inside bool // a call
	entry  syscallInfo
	start  time.Time
}

// stat is a line of the summary.
type stat struct {
	calls, errors int
	time          time.Duration
}

// syscallInfo is the kernel's struct ptrace_syscall_info.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	_    [2]uint64 // instruction and stack pointer
	nr   uint64    // at the end of a call: the result
	args [6]uint64 // at the end of a call: the first byte says whether it failed
	_    uint64
}

const (
	opEntry = 1
	opExit  = 2

	getSyscallInfo = 0x420e
	eventStop      = 128
)

func strace(c *applet.Call) error {
	c.Posix()
	t := &tracer{out: c.Err, tasks: map[int]*task{}, calls: map[string]*stat{}, names: names()}
	pids := c.Strings("p", "PID", "trace a process that runs, with all its threads; may be repeated")
	follow := c.Bool("f", "trace the processes too that are started")
	exprs := c.Strings("e", "LIST", "only these calls, for example openat,read or trace=%file, %network, %process")
	out := c.String("o", "FILE", "", "write to a file")
	size := c.Int("s", "N", 64, "show texts up to N bytes")
	clock, took := c.Bool("t", "show the time of day"), c.Bool("T", "show how long calls took")
	summary := c.Bool("c", "only count the calls")
	c.Bool("q", "does nothing")
	if err := c.Parse(0, -1); err != nil {
		return err
	}
	t.children, t.size, t.clock, t.took, t.summary = *follow, *size, *clock, *took, *summary
	if err := t.choose(*exprs); err != nil {
		return err
	}
	if *out != "" {
		f, err := os.Create(*out)
		if err != nil {
			return err
		}
		defer f.Close()
		t.out = f
	}
	if (len(*pids) == 0) == (len(c.Args) == 0) {
		return applet.Usage("missing command or -p PID")
	}
	runtime.LockOSThread() // only the thread that traces may ask
	if len(c.Args) > 0 {
		if err := t.launch(c.Args); err != nil {
			return err
		}
	}
	for _, p := range *pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			return applet.Usage("process %q is not a number", p)
		}
		if err := t.attach(pid); err != nil {
			return err
		}
	}
	t.onSignal(len(c.Args) == 0)
	code, err := t.loop()
	t.report()
	if err == nil && code != 0 {
		return applet.Exit(code)
	}
	return err
}

// choose reads what -e says.
func (t *tracer) choose(exprs []string) error {
	groups := map[string][]string{
		"%file": {"open", "openat", "openat2", "stat", "lstat", "newfstatat", "fstatat", "statx", "access", "faccessat",
			"faccessat2", "execve", "readlink", "readlinkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rename",
			"renameat", "renameat2", "chdir", "chmod", "fchmodat", "chown", "fchownat", "symlinkat", "linkat"},
		"%network": {"socket", "connect", "bind", "listen", "accept", "accept4", "sendto", "recvfrom", "sendmsg",
			"recvmsg", "shutdown", "getsockname", "getpeername", "setsockopt", "getsockopt"},
		"%process": {"clone", "clone3", "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid",
			"kill", "tgkill", "tkill"},
	}
	known := slices.Collect(maps.Values(t.names))
	for _, e := range exprs {
		for name := range strings.SplitSeq(strings.TrimPrefix(e, "trace="), ",") {
			if t.only == nil {
				t.only = map[string]bool{}
			}
			list, ok := groups["%"+strings.TrimPrefix(name, "%")]
			if !ok {
				if !slices.Contains(known, name) {
					return applet.Usage("system call %q is not known", name)
				}
				list = []string{name}
			}
			for _, l := range list {
				t.only[l] = true
			}
		}
	}
	return nil
}

func (t *tracer) options() int {
	o := unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC
	if t.children {
		o |= unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	}
	return o
}

// launch starts a command that stops before its first call.
func (t *tracer) launch(args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return applet.Fail(127, "%s: command not found", args[0])
	}
	cmd := &exec.Cmd{Path: path, Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Ptrace: true}}
	if err := cmd.Start(); err != nil {
		return applet.Fail(126, "%w", err)
	}
	t.child = cmd.Process.Pid
	var status unix.WaitStatus
	if _, err := unix.Wait4(t.child, &status, 0, nil); err != nil {
		return err
	}
	if err := unix.PtraceSetOptions(t.child, t.options()); err != nil {
		return err
	}
	t.tasks[t.child] = &task{}
	return unix.PtraceSyscall(t.child, 0)
}

// attach begins to trace all threads of a process.
func (t *tracer) attach(pid int) error {
	dirs, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	if err != nil || len(dirs) == 0 {
		return fmt.Errorf("there is no process %d", pid)
	}
	for _, d := range dirs {
		tid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		if err := ptrace(unix.PTRACE_SEIZE, tid, 0, uintptr(t.options())); err != nil {
			if errors.Is(err, unix.EPERM) {
				return fmt.Errorf("process %d may not be traced (needs CAP_SYS_PTRACE or the same user, and that nobody traces it already): %w", pid, err)
			}
			if errors.Is(err, unix.ESRCH) {
				continue // the thread has ended
			}
			return fmt.Errorf("trace process %d: %w", pid, err)
		}
		t.tasks[tid] = &task{}
		if err := ptrace(unix.PTRACE_INTERRUPT, tid, 0, 0); err != nil {
			return fmt.Errorf("trace process %d: %w", pid, err)
		}
	}
	t.many = len(t.tasks) > 1
	return nil
}

func ptrace(request, pid int, addr, data uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// onSignal ends strace on Ctrl-C; the kernel lets go of what is traced. A command that strace started got Ctrl-C
// itself.
func (t *tracer) onSignal(interrupt bool) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	go func() {
		for s := range signals {
			if s == unix.SIGINT && !interrupt {
				continue
			}
			t.mu.Lock() // for good: nothing is printed any more
			t.write()
			os.Exit(0)
		}
	}()
}

// loop follows the tasks until there are none.
func (t *tracer) loop() (code int, err error) {
	for len(t.tasks) > 0 {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return code, nil
		case err != nil:
			return code, err
		}
		t.mu.Lock()
		deliver := t.stopped(pid, status)
		t.mu.Unlock()
		switch {
		case status.Exited() || status.Signaled():
			if pid == t.child {
				if code = status.ExitStatus(); status.Signaled() {
					code = 128 + int(status.Signal())
				}
			}
			delete(t.tasks, pid)
		case deliver < 0:
			_ = ptrace(unix.PTRACE_LISTEN, pid, 0, 0) // stays stopped, as job control wants it
		default:
			_ = unix.PtraceSyscall(pid, deliver) // it may have been killed meanwhile: its end is told next
		}
	}
	return code, nil
}

// stopped looks at why a task stopped, and returns the signal to go on with: 0 is none, -1 to leave it stopped.
func (t *tracer) stopped(pid int, status unix.WaitStatus) int {
	k, known := t.tasks[pid]
	if !known {
		k = &task{}
		t.tasks[pid] = k
		t.many = true
	}
	switch {
	case status.Exited():
		t.line(pid, "+++ exited with %d +++", status.ExitStatus())
		return 0
	case status.Signaled():
		t.line(pid, "+++ killed by %s +++", unix.SignalName(status.Signal()))
		return 0
	}
	sig, event := status.StopSignal(), int(status)>>16
	switch {
	case sig == unix.SIGTRAP|0x80:
		t.syscall(pid, k)
		return 0
	case event == eventStop:
		if slices.Contains([]syscall.Signal{unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU}, sig) {
			return -1
		}
		return 0
	case event != 0, sig == unix.SIGSTOP && !known:
		return 0
	}
	t.line(pid, "--- %s ---", unix.SignalName(sig))
	return int(sig)
}

func (t *tracer) syscall(pid int, k *task) {
	var info syscallInfo
	if err := ptrace(getSyscallInfo, pid, unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info))); err != nil {
		return
	}
	switch {
	case info.op == opEntry:
		k.inside, k.entry, k.start = true, info, time.Now()
		// which may not come back
		if name := t.name(info.nr); name == "exit" || name == "exit_group" || name == "execve" {
			t.call(pid, k, nil)
		}
	case info.op == opExit && k.inside:
		k.inside = false
		t.call(pid, k, &info)
	}
}

func (t *tracer) name(nr uint64) string {
	if n, ok := t.names[nr]; ok {
		return n
	}
	return fmt.Sprintf("syscall_%d", nr)
}

// call prints a call; exit is nil when it is only about to be made.
func (t *tracer) call(pid int, k *task, exit *syscallInfo) {
	name := t.name(k.entry.nr)
	early := name == "exit" || name == "exit_group" || name == "execve"
	if t.only != nil && !t.only[name] {
		return
	}
	if exit != nil {
		s := t.calls[name]
		if s == nil {
			s = &stat{}
			t.calls[name] = s
		}
		s.calls++
		s.time += time.Since(k.start)
		if int64(exit.nr) < 0 && int64(exit.nr) > -4096 {
			s.errors++
		}
	}
	if t.summary {
		return
	}
	switch {
	case exit == nil:
		end := ""
		if name != "execve" {
			end = " = ?"
		}
		t.line(pid, "%s(%s)%s", name, t.arguments(pid, name, k.entry.args, 0), end)
	case early:
		t.line(pid, "... %s = %s", name, result(name, int64(exit.nr)))
	default:
		text := fmt.Sprintf("%s(%s) = %s", name, t.arguments(pid, name, k.entry.args, int64(exit.nr)),
			result(name, int64(exit.nr)))
		if t.took {
			text += fmt.Sprintf(" <%.6f>", time.Since(k.start).Seconds())
		}
		t.line(pid, "%s", text)
	}
}

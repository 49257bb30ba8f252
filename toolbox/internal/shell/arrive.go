// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A signal comes in four steps: the kernel has it for the process; one of its threads has taken it, but is still in the
// kernel or at the beginning of the handler of Go's runtime; the handler has put it into the runtime's queue; package
// signal has handed it on. What a program has sent that has ended is at the first step or further, and is to be noted
// before the next command. The kernel shows the first step, and signal.Stop waits for the third: see [traps.deliver].
// Between them, it shows nothing for sure; but a thread cannot take another signal before it has done with the one it
// has taken. So those that may have taken one are sent another.

// probe is the signal for that: the runtime sends it to its own threads all the time, to interrupt them, and does
// nothing about one that it did not send.
const probe = unix.SIGURG

// patience is how long a signal on its way is waited for: on a busy machine it takes until its thread has its turn.
const patience = time.Second

// settle notes what programs have sent that have ended.
func (t *traps) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.catches() {
		return
	}
	late := time.Now().Add(patience)
	t.arrive(late)
	if _, trapped := t.of[probe]; !trapped { // it would run that trap
		taken(late)
	}
	t.handOn()
	t.gather()
}

// catches tells whether there is a trap that is not only there to ignore its signal. The caller holds mu.
func (t *traps) catches() bool {
	for _, trap := range t.of {
		if trap.code != "" {
			return true
		}
	}
	return false
}

// arrive returns when the kernel has no signal with a trap any more that no thread has taken. The caller holds mu.
func (t *traps) arrive(late time.Time) {
	for t.underWay() && time.Now().Before(late) {
		giveTurn()
	}
}

// underWay tells whether the kernel has a signal with a trap that no thread has taken yet. The caller holds mu.
func (t *traps) underWay() bool {
	var buffer [4096]byte
	text, ok := readOnce(unix.AT_FDCWD, "/proc/self/status", buffer[:])
	if !ok {
		return false
	}
	_, rest, _ := bytes.Cut(text, []byte("\nShdPnd:"))
	word, _, _ := bytes.Cut(rest, []byte("\n"))
	set, err := strconv.ParseUint(string(bytes.TrimSpace(word)), 16, 64)
	if err != nil {
		return false
	}
	for sig := range t.of {
		if set&(1<<(sig-1)) != 0 {
			return true
		}
	}
	return false
}

// handOn returns when what is in the runtime's queue is in the channels. The caller holds mu.
func (t *traps) handOn() {
	for sig, trap := range t.of {
		// it is caught already: nothing changes but that Stop returns once all that came before is handed on
		if trap.code != "" {
			more := make(chan os.Signal, 1)
			signal.Notify(more, sig)
			signal.Stop(more)
			return
		}
	}
}

// taken returns when no thread of this process is about any more to put a signal into the queue that it has taken
// before.
func taken(late time.Time) {
	runtime.LockOSThread() // which is not about to: it is here
	defer runtime.UnlockOSThread()
	tasks, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(tasks)
	var buffer [4096]byte
	for {
		n, err := unix.ReadDirent(tasks, buffer[:])
		if n <= 0 || err != nil {
			return
		}
		_, _, names := unix.ParseDirent(buffer[:n], -1, nil)
		for _, name := range names {
			if id, err := strconv.Atoi(name); err == nil && id != unix.Gettid() {
				done(tasks, id, late)
			}
		}
	}
}

// done returns when a thread has done with the signal that it may have taken.
func done(tasks, id int, late time.Time) {
	stat := strconv.Itoa(id) + "/stat"
	if th, ok := readThread(tasks, stat); !ok || th.idle() || unix.Tgkill(unix.Getpid(), id, probe) != nil {
		return
	}
	for time.Now().Before(late) {
		if th, ok := readThread(tasks, stat); !ok || th.idle() || th.pending&(1<<(probe-1)) == 0 {
			return
		}
		giveTurn()
	}
}

// giveTurn lets other threads run, also where this process has one processor and others want it, too.
func giveTurn() {
	_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	runtime.Gosched()
}

// thread is what /proc says of a thread of this process.
type thread struct {
	state            byte   // as ps shows it
	pending, blocked uint64 // signals, up to 31
}

// readThread reads a thread's stat, which takes the kernel a fraction of the time of its status; false: it has ended.
func readThread(tasks int, path string) (th thread, ok bool) {
	var buffer [1024]byte
	text, ok := readOnce(tasks, path, buffer[:])
	if !ok {
		return thread{}, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // names may have blanks
	if len(fields) < 30 {
		return thread{}, false
	}
	th.state = fields[0][0]
	var errs [2]error
	th.pending, errs[0] = strconv.ParseUint(string(fields[28]), 10, 64)
	th.blocked, errs[1] = strconv.ParseUint(string(fields[29]), 10, 64)
	return th, errors.Join(errs[:]...) == nil
}

// idle tells whether a thread has not taken a signal: it sleeps, and outside of the handler, which holds all signals
// back, also those that the runtime holds back nowhere else.
func (th thread) idle() bool { return th.state == 'S' && th.blocked&(1<<(unix.SIGSEGV-1)) == 0 }

// readOnce reads the beginning of a file of /proc, with one call.
func readOnce(folder int, path string, buffer []byte) ([]byte, bool) {
	fd, err := unix.Openat(folder, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return nil, false
	}
	return buffer[:n], true
}

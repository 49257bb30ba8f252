// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thread that has taken a signal, and has not done with it, is waited for. This one holds all signals back, as in a
// handler, until it is sent the one by which it is told from others.
func TestThreadThatHasTakenASignal(t *testing.T) {
	holds, over := make(chan struct{}), make(chan struct{})
	var done, early atomic.Bool
	go func() {
		defer close(over)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var all, old unix.Sigset_t
		for i := range all.Val {
			all.Val[i] = ^all.Val[i]
		}
		if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
			t.Error(err)
		}
		path := fmt.Sprintf("/proc/self/task/%d/stat", unix.Gettid())
		close(holds)
		for !early.Load() {
			if th, ok := readThread(unix.AT_FDCWD, path); !ok || th.pending&(1<<(probe-1)) != 0 {
				break
			}
		}
		done.Store(true)
		if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
			t.Error(err)
		}
	}()
	<-holds
	taken(time.Now().Add(time.Minute))
	if !done.Load() {
		t.Error("it was not waited for")
	}
	early.Store(true)
	<-over
}

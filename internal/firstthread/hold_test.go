// SPDX-License-Identifier: Apache-2.0

package firstthread

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever goroutines take threads for themselves, none gets the first.
func TestNobodyElseGetsTheFirstThread(t *testing.T) {
	const many = 64 // more than there are threads: all that are idle are taken
	var all, started sync.WaitGroup
	begin := make(chan struct{})
	got := make(chan int, many)
	for range many {
		started.Add(1)
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with it
			started.Done()
			<-begin
			got <- unix.Gettid()
		})
	}
	started.Wait()
	close(begin)
	all.Wait()
	close(got)
	for tid := range got {
		if tid == os.Getpid() {
			t.Fatal("a goroutine runs on the process's first thread")
		}
	}
}

// A program runs on another thread than the first, and its exit code is main's.
func TestBeside(t *testing.T) {
	tid := 0
	if code := Beside(func() int { tid = unix.Gettid(); return 7 }); code != 7 || tid == os.Getpid() || tid == 0 {
		t.Errorf("exit code %d, on thread %d of process %d", code, tid, os.Getpid())
	}
}

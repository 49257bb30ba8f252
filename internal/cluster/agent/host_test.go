// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// What goes into other namespaces does so on a thread that ends, whatever thread comes first: an agent whose first
// thread was in the machine's namespaces took them for its own, and started sessions in its own ones.
func TestOnOwnThread(t *testing.T) {
	words := errors.New("done")
	var mu sync.Mutex
	used := map[int]bool{}
	var work sync.WaitGroup
	for range 200 {
		work.Go(func() {
			err := onOwnThread(func() error {
				runtime.Gosched()
				mu.Lock()
				defer mu.Unlock()
				if tid := unix.Gettid(); tid == unix.Getpid() {
					t.Error("it is the first thread")
				} else {
					used[tid] = true
				}
				return words
			})
			if err != words {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if len(used) == 0 {
		t.Error("nothing was done")
	}
}

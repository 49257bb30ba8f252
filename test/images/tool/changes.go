// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"syscall"
)

// changes tells that something may have changed beside the journal, or in it: a file was made, removed or written. It
// tells at once, too, so that whoever looks after each word misses nothing. A look every now and then would cost the
// machine more than all else that many containers do here.
func (j journal) changes() (<-chan struct{}, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	const what = syscall.IN_CREATE | syscall.IN_MOVED_TO | syscall.IN_DELETE | syscall.IN_MODIFY
	if _, err := syscall.InotifyAddWatch(fd, filepath.Dir(j.path), what); err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	go func() {
		events := make([]byte, 64<<10)
		for {
			if n, err := syscall.Read(fd, events); err == syscall.EINTR {
				continue
			} else if err != nil || n <= 0 {
				return // this process is ending
			}
			select {
			case changed <- struct{}{}:
			default: // what was told is not looked at yet
			}
		}
	}()
	return changed, nil
}

// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// oomWatch watches a container's cgroup for OOM kills. The kernel notifies it of each, and it looks once more when it
// is asked at the container's end: nothing that was killed is missed.
type oomWatch struct {
	path   string
	notify func()

	mu    sync.Mutex
	seen  int
	event *os.File // readable at each change
}

// watchOOM calls notify whenever the count of kills has grown.
func watchOOM(c cgroup, notify func()) (*oomWatch, error) {
	path, unified := c.oomFile()
	w := &oomWatch{path: path, notify: notify}
	if path == "" {
		return w, nil
	}
	var err error
	if unified {
		w.event, err = watchFile(path)
	} else {
		w.event, err = watchControl(path)
	}
	if err != nil {
		return w, fmt.Errorf("watch %s: %w", path, err)
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			if _, err := w.event.Read(buffer); err != nil {
				return // closed
			}
			w.lookAgain(unified)
		}
	}()
	return w, nil
}

// lookAgain looks after an event. Version 1 has it just before the kernel kills.
func (w *oomWatch) lookAgain(unified bool) {
	for _, pause := range []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		time.Sleep(pause)
		if w.look() || unified {
			return
		}
	}
}

// watchFile has inotify say when a file of the unified hierarchy changes.
func watchFile(path string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}

// watchControl asks version 1 for an event when the kernel has no memory to give.
func watchControl(path string) (*os.File, error) {
	control, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	event := os.NewFile(uintptr(fd), "eventfd")
	ask := fmt.Sprintf("%d %d", fd, control.Fd())
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "cgroup.event_control"), []byte(ask), 0); err != nil {
		event.Close()
		return nil, err
	}
	return event, nil
}

// look reports whether there was a kill since the last look.
func (w *oomWatch) look() (more bool) {
	if w == nil || w.path == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := oomKills(w.path)
	if n <= w.seen {
		return false
	}
	w.seen = n
	w.notify()
	return true
}

// stop ends the watch, with a last look.
func (w *oomWatch) stop() {
	if w == nil {
		return
	}
	w.look()
	if w.event != nil {
		_ = w.event.Close()
	}
}

// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watcher signals when something happens to the files of a folder. It uses inotify itself, as the usual library hides
// the one event that says that a writer is done with a file.
type watcher struct {
	wake   chan struct{} // capacity 1
	closed atomic.Uint64 // how often a file that was open for writing was closed

	mu    sync.Mutex
	names map[string]bool // of those files

	inotify *os.File
	ticker  *time.Ticker
	wait    sync.WaitGroup
}

// happens is what a watcher hears of.
const happens = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_ONLYDIR

// watch starts to watch a folder. Where no inotify is to be had (each user has a limited number) it looks four times a
// second.
func watch(dir string) (*watcher, error) {
	w := &watcher{wake: make(chan struct{}, 1), names: map[string]bool{}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == unix.EMFILE || err == unix.ENFILE {
		w.poll()
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("watch the log folder %s: %w", dir, err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, happens); err != nil {
		unix.Close(fd)
		if err == unix.ENOSPC {
			w.poll()
			return w, nil
		}
		return nil, fmt.Errorf("watch the log folder %s: %w", dir, err)
	}
	w.inotify = os.NewFile(uintptr(fd), "inotify")
	w.wait.Go(w.read)
	return w, nil
}

// follow watches the folder of the file that a link leads to as well.
func (w *watcher) follow(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || w.inotify == nil {
		return nil // it was opened; a file that has gone since is the reader's business
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("container log: %w", err)
	}
	raw, err := w.inotify.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		_, failed = unix.InotifyAddWatch(int(fd), filepath.Dir(to), happens)
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("watch the log folder %s: %w", filepath.Dir(to), err)
	}
	return nil
}

func (w *watcher) read() {
	buf := make([]byte, 16<<10)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return // closed
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent
			if e.Mask&unix.IN_CLOSE_WRITE != 0 {
				w.noteClosed(string(bytes.TrimRight(buf[at:at+int(e.Len)], "\x00")))
			}
			at += int(e.Len)
		}
		w.nudge()
	}
}

func (w *watcher) noteClosed(name string) {
	w.mu.Lock()
	w.names[name] = true
	w.mu.Unlock()
	w.closed.Add(1)
}

// wasClosed says whether a writer of the file of that name closed it, as the file was called then.
func (w *watcher) wasClosed(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[name]
}

func (w *watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) poll() {
	w.ticker = time.NewTicker(250 * time.Millisecond)
}

// events are nudges to look again.
func (w *watcher) events() (<-chan struct{}, <-chan time.Time) {
	if w.ticker != nil {
		return nil, w.ticker.C
	}
	return w.wake, nil
}

func (w *watcher) stop() {
	if w.ticker != nil {
		w.ticker.Stop()
		return
	}
	w.inotify.Close()
	w.wait.Wait()
}

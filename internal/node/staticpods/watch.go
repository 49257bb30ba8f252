// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watch reports what happens to the files of a folder. It uses inotify itself, as the usual library hides the event
// that says that a writer is done with a file.
type watch struct {
	dir    string
	signal chan struct{} // holds one token when something has happened
	ended  chan struct{} // closed when the folder is gone, or nothing more can be heard of it

	mu    sync.Mutex
	again map[string]bool // files that were taken away
	busy  map[string]bool // files that somebody writes

	inotify *os.File
	wait    sync.WaitGroup
}

// watchFolder begins to watch the folder, or the one that the file is in.
func watchFolder(path string) (*watch, error) {
	dir := path
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		dir = filepath.Dir(path)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	const mask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_DELETE | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, dir, mask); err != nil {
		unix.Close(fd)
		return nil, err
	}
	w := &watch{dir: dir, signal: make(chan struct{}, 1), ended: make(chan struct{}), again: map[string]bool{},
		busy: map[string]bool{}, inotify: os.NewFile(uintptr(fd), "inotify")}
	w.wait.Go(w.read)
	return w, nil
}

func (w *watch) close() {
	w.inotify.Close()
	w.wait.Wait()
}

func (w *watch) read() {
	defer close(w.ended)
	buf := make([]byte, 16<<10)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return // closed
		}
		gone, look := false, false
		w.mu.Lock()
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
			at += unix.SizeofInotifyEvent
			name := string(bytes.TrimRight(buf[at:at+int(e.Len)], "\x00"))
			at += int(e.Len)
			gone = gone || e.Mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0
			look = w.note(e.Mask, filepath.Join(w.dir, name)) || look
		}
		w.mu.Unlock()
		if look || gone {
			select {
			case w.signal <- struct{}{}:
			default:
			}
		}
		if gone {
			return
		}
	}
}

// note takes in one event, and reports whether it is a reason to look.
func (w *watch) note(mask uint32, file string) bool {
	switch {
	case mask&unix.IN_DELETE != 0:
		w.again[file] = true
		delete(w.busy, file)
	case mask&(unix.IN_CLOSE_WRITE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
		delete(w.busy, file)
	case mask&unix.IN_MODIFY != 0:
		w.busy[file] = true // until it is closed
		return false
	case mask&unix.IN_CREATE != 0:
		// A file that is created is about to be written; a link is whole. Which it is, is seen when it is looked at.
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() {
			w.busy[file] = true
			return false
		}
	}
	return true
}

// take returns what has happened since it was called last. Who writes still writes.
func (w *watch) take() (again, busy map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	again, w.again = w.again, map[string]bool{}
	busy = make(map[string]bool, len(w.busy))
	for f := range w.busy {
		busy[f] = true
	}
	return again, busy
}

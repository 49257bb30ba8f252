// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is for how long Take tries again for a lock whose holder is gone.
const Patience = 3 * time.Second

// tick is the time between two tries: flock(2) can wait, but not for a time.
const tick = 10 * time.Millisecond

// ErrHeld is what Take returns when another process has the lock.
var ErrHeld = errors.New("locked by another process")

// Take locks f for this process alone. While another has the lock, it asks held whether that is a process at work: if
// so, it returns ErrHeld at once, else when patience is over.
func Take(f *os.File, patience time.Duration, held func() bool) error {
	for end := time.Now().Add(patience); ; time.Sleep(tick) {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return err
		case held() || time.Now().After(end):
			return ErrHeld
		}
	}
}

// Held reports whether a process has the lock of the file at path. A file that is not there, or must not be read, is
// locked by nobody that the caller could know of.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// Nobody is for Take where whoever works on the folder is known to be gone.
func Nobody() bool { return false }

// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// stopped is the file that says who has stopped a session.
func (m Machine) stopped(id string) string { return filepath.Join(m.Dir(id), "stopped") }

// Stop ends a session. It signals the session's command, which ends what runs and what is about to start, and reports
// who stopped it. If the command does not react, the session's processes are killed.
func (m Machine) Stop(r Record, by string) error {
	err := os.WriteFile(m.stopped(r.ID), []byte(by), 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just ended
	}
	if err != nil {
		return err
	}
	command, err := unix.PidfdOpen(r.PID, 0)
	if err != nil { // it has ended: its guard is cleaning up
		return m.End(r.ID)
	}
	defer unix.Close(command)
	// Checked while the process is held, so that the signal cannot reach another one with the same number.
	if !m.holdsLock(r) || unix.PidfdSendSignal(command, unix.SIGTERM, nil, 0) != nil {
		return m.End(r.ID)
	}
	if awaitEnd(command, time.Now().Add(endTime)) != nil {
		return m.End(r.ID)
	}
	return nil
}

// holdsLock reports whether a session's command is the process that it says it is.
func (m Machine) holdsLock(r Record) bool {
	dir := filepath.Join("/proc", strconv.Itoa(r.PID), "fd")
	all, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range all {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == m.Lock(r.ID) {
			return true
		}
	}
	return false
}

// StoppedBy is who has stopped a session; nothing if nobody has.
func (m Machine) StoppedBy(id string) string {
	text, err := os.ReadFile(m.stopped(id))
	if err != nil {
		return ""
	}
	return string(text)
}

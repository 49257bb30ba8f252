// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors watches over the file descriptors of this process. Its methods are safe for concurrent use.
type Descriptors struct {
	limit   int
	reserve int
	spare   *os.File
}

// Shares of the descriptors: those of connections are given out in shed.LimitsFor.
const (
	leastReserve = 64
	mostReserve  = 1024
)

// NewDescriptors raises the process's limit as far as it may be raised. Its children begin with the limit that the
// process began with.
func NewDescriptors() (*Descriptors, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return nil, fmt.Errorf("ask how many files may be open: %w", err)
	}
	if l.Cur < l.Max { // Go has done it, unless somebody lowered it again
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: l.Max, Max: l.Max}); err == nil {
			l.Cur = l.Max
		}
	}
	spare, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	limit := int(min(l.Cur, 1<<24))
	return &Descriptors{limit: limit, reserve: max(leastReserve, min(limit/8, mostReserve)), spare: spare}, nil
}

// Limit is how many files the process may have open.
func (d *Descriptors) Limit() int { return d.limit }

// Short reports whether so few descriptors are left that they should be kept for what the server cannot do without: its
// store above all. The kernel gives out the lowest number that is free; so what lies above the one it gives now is all
// that is left for certain.
func (d *Descriptors) Short() bool {
	fd, err := unix.FcntlInt(d.spare.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return true
	}
	_ = unix.Close(fd) // of /dev/null
	return fd >= d.limit-d.reserve
}

// Close frees what d holds itself.
func (d *Descriptors) Close() error { return d.spare.Close() }

// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Message is one of the kernel's.
type Message struct {
	At   time.Duration // since the machine began
	Text string
}

// most bounds what is read of the kernel's messages, which has a ring of some hundred kilobytes for them.
const most = 100_000

// Read returns the messages that the kernel still has, the oldest first. Only root may, on most machines.
func Read() ([]Message, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/kmsg", Err: err}
	}
	defer unix.Close(fd)
	var all []Message
	record := make([]byte, 16<<10) // one of them, which the kernel never cuts shorter
	for len(all) < most {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return all, nil
		case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EINTR): // it was overwritten meanwhile: the next one
			continue
		case err != nil:
			return all, &os.PathError{Op: "read", Path: "/dev/kmsg", Err: err}
		}
		all = append(all, parse(string(record[:n])))
	}
	return all, nil
}

// parse reads a record: "level,sequence,microseconds,flags;text", and lines with a blank before them that belong to it.
func parse(record string) (m Message) {
	head, text, _ := strings.Cut(record, ";")
	m.Text, _, _ = strings.Cut(text, "\n")
	if fields := strings.Split(head, ","); len(fields) > 2 {
		if at, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
			m.At = time.Duration(at) * time.Microsecond
		}
	}
	return m
}

// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// logger writes what goes wrong into the bundle's log pipe, which containerd reads. When nobody reads, nothing is
// written: a shim never waits for its log.
type logger struct {
	id string
	to *os.File // nil: nowhere
}

// openLog opens the pipe in the working folder.
func openLog(id string) *logger {
	fd, err := unix.Open("log", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return &logger{id: id}
	}
	return &logger{id: id, to: os.NewFile(uintptr(fd), "log")}
}

func (l *logger) error(what string, err error) {
	if l.to == nil {
		return
	}
	_ = l.to.SetWriteDeadline(time.Now().Add(time.Millisecond))
	fmt.Fprintf(l.to, "time=%q level=error msg=%q shim=%s\n", time.Now().Format(time.RFC3339Nano),
		what+": "+err.Error(), l.id)
}

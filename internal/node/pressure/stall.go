// SPDX-License-Identifier: Apache-2.0

package pressure

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// trigger asks the kernel to signal when, within two seconds, some process has waited 300 ms for memory. Windows that
// are multiples of two seconds need no privilege (https://docs.kernel.org/accounting/psi.html).
const trigger = "some 300000 2000000\x00"

// Stalls signals on a channel, at most every two seconds, that processes wait for memory. It ends with ctx, and closes
// the channel then. A kernel without pressure stall information is an error; file is /proc/pressure/memory.
func Stalls(ctx context.Context, file string) (<-chan struct{}, error) {
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := unix.Write(fd, []byte(trigger)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), unix.Close(fd))
	}
	end, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	out := make(chan struct{}, 1)
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_, _ = unix.Write(end, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // only a full counter can fail
	})
	go func() {
		defer close(out)
		// A thread of its own waits: Go's poller does not know urgent data, which is how the kernel signals.
		watch(fd, end, out)
		if !stop() {
			<-over
		}
		_, _ = unix.Close(fd), unix.Close(end)
	}()
	return out, nil
}

// watch polls until end is written to, or the trigger is lost with its control group.
func watch(fd, end int, out chan<- struct{}) {
	for {
		wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}, {Fd: int32(end), Events: unix.POLLIN}}
		_, err := unix.Poll(wait, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || wait[1].Revents != 0 || wait[0].Revents&unix.POLLERR != 0:
			return
		case wait[0].Revents&unix.POLLPRI != 0:
			select {
			case out <- struct{}{}:
			default: // signalled already, and not received yet
			}
		}
	}
}

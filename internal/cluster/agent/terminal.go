// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// newTerminal makes a terminal. Its own side hands every byte on as it is: the debugger's echoes and signals.
func newTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a terminal for the session: %w", err)
	}
	theirs, err = otherSide(ours)
	if err == nil {
		_, err = term.MakeRaw(int(theirs.Fd()))
	}
	if err != nil {
		ours.Close()
		if theirs != nil {
			theirs.Close()
		}
		return nil, nil, fmt.Errorf("a terminal for the session: %w", err)
	}
	return ours, theirs, nil
}

// otherSide opens the other side of a terminal, which is not looked for by a path.
func otherSide(ours *os.File) (*os.File, error) {
	conn, err := ours.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer uintptr
	var perr error
	if err := conn.Control(func(fd uintptr) {
		if perr = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); perr != nil {
			return
		}
		const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
		fd, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.TIOCGPTPEER, flags)
		if peer = fd; errno != 0 {
			perr = errno
		}
	}); err != nil {
		return nil, err
	}
	if perr != nil {
		return nil, perr
	}
	return os.NewFile(peer, "terminal"), nil
}

// setSize sets a terminal's size to that of the client's window.
func setSize(terminal *os.File, s size) error {
	conn, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = conn.Control(func(fd uintptr) {
		serr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: s.Width, Row: s.Height})
	})
	if err != nil {
		return err
	}
	return serr
}

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// watchSize sends a terminal's size: at once, and whenever it changes, until ctx is done.
func watchSize(ctx context.Context, fd int) <-chan Size {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	changed <- syscall.SIGWINCH // the first size is news too
	sizes := make(chan Size)
	go func() {
		defer signal.Stop(changed)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			width, height, err := term.GetSize(fd)
			if err != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case sizes <- Size{Width: uint16(width), Height: uint16(height)}:
			}
		}
	}()
	return sizes
}

const (
	ctrlP = 0x10
	ctrlQ = 0x11
)

// detacher reads for a session until the user presses Ctrl-P Ctrl-Q. A Ctrl-P that no Ctrl-Q follows is handed on.
type detacher struct {
	in    io.Reader
	leave func()
	held  bool // a Ctrl-P was read and not handed on
	left  bool
}

func (d *detacher) Read(p []byte) (int, error) {
	if d.left {
		return 0, io.EOF
	}
	if len(p) < 2 {
		return d.in.Read(p)
	}
	// One byte is kept free for the Ctrl-P that was held back.
	buf := make([]byte, len(p)-1)
	for {
		n, err := d.in.Read(buf)
		out := 0
		for _, b := range buf[:n] {
			switch {
			case d.held && b == ctrlQ:
				d.left = true
				d.leave()
				return out, io.EOF
			case d.held && b == ctrlP:
				p[out] = ctrlP // the first of the two; the second may be the one
				out++
				continue
			case d.held:
				p[out] = ctrlP
				out++
				d.held = false
			}
			if b == ctrlP {
				d.held = true
				continue
			}
			p[out] = b
			out++
		}
		if out > 0 || err != nil {
			return out, err
		}
	}
}

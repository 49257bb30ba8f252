// SPDX-License-Identifier: Apache-2.0

package spare

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pause is between two looks.
	pause = 5 * time.Second
	// atRest is the most that a process computes between two looks when it is quiet: 3 % of a core.
	atRest = 150 * time.Millisecond
	// worth is by how much a process must have grown since memory was last given back. Giving back costs a collection
	// of garbage, some 60 ms, and a thousand page faults for the part of the program that is used after all.
	worth = 24 << 20
)

// Run gives back what there is whenever the process is quiet after it has grown. It ends with ctx, and with nothing
// else: what cannot be looked at now, as on a process that has no descriptor left, is looked at the next time.
func Run(ctx context.Context, log *slog.Logger) error {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	var w work
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := w.look(); err != nil {
			log.Debug("cannot give memory back", "err", err)
		}
	}
}

// look gives memory back if it is time to.
func (w *work) look() error {
	computed, err := computed()
	if err != nil {
		return err
	}
	resident, err := resident()
	if err != nil {
		return err
	}
	if !w.over(computed, resident) {
		return nil
	}
	return give()
}

// work is what is known of what a process has done.
type work struct {
	last  time.Duration // what it had computed at the last look
	given bool          // memory was given back at the last look
	after int64         // the memory it had at the look after that
}

// over reports, at each look, whether work has been done that is over now. (Pure.)
func (w *work) over(computed time.Duration, resident int64) bool {
	quiet := computed-w.last <= atRest
	w.last = computed
	if w.given || resident < w.after {
		w.given, w.after = false, resident
	}
	w.given = quiet && resident >= w.after+worth
	return w.given
}

// computed is the time that this process has computed since its start.
func computed() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, os.NewSyscallError("getrusage", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// resident is how much memory this process has.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var all, pages int64
	if _, err := fmt.Sscan(string(text), &all, &pages); err != nil {
		return 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

func give() error {
	debug.FreeOSMemory()
	return giveProgram()
}

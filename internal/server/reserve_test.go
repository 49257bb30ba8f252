// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReserve proves RS-02: the reserve takes room as long as there is some, is given up on a full disk, once, and made again later, also
// by the next server.
func TestReserve(t *testing.T) {
	dir := t.TempDir()
	taken := func() int64 {
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, "reserve"), &st); err != nil {
			return 0
		}
		return st.Blocks * 512
	}
	r := newReserve(dir, slog.New(slog.DiscardHandler))
	r.measured(reserveFrom - 1)
	if taken() != 0 {
		t.Error("made on a disk that is too small for it")
	}
	r.measured(reserveFrom)
	if taken() < reserveBytes {
		t.Fatalf("it takes %d bytes", taken())
	}
	r = newReserve(dir, slog.New(slog.DiscardHandler)) // another server
	r.measured(reserveUntil)
	if taken() == 0 {
		t.Error("given up too early")
	}
	r.measured(reserveUntil - 1)
	if taken() != 0 {
		t.Error("not given up")
	}
	r.measured(0)
	r.measured(reserveFrom)
	if taken() < reserveBytes {
		t.Error("not made again")
	}
	if err := layOut(filepath.Join(dir, "none", "reserve"), 1); err == nil || !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

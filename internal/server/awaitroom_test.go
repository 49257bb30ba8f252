// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAwaitRoomHasTheReserve: RS-02 a server that could not go on, since its disk was full, starts again in the room of the reserve: what fills
// the disk may be a pod's, which nobody else evicts.
func TestAwaitRoomHasTheReserve(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=20m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	held := newReserve(dir, slog.New(slog.DiscardHandler))
	if err := layOut(held.path, reserveBytes); err != nil {
		t.Fatal(err)
	}
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	if _, err := io.Copy(fill, endless{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not get full: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel() // whoever waits is told to end at once
	if err := AwaitRoom(over, dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("with a reserve: %v", err)
	}
	if _, err := io.Copy(fill, endless{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not get full: %v", err)
	}
	if err := AwaitRoom(over, dir, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		t.Errorf("without a reserve, and without room: %v", err)
	}
}

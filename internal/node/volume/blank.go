// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/oneline"
)

// edge is how much of a device's beginning and end is read before it is taken for blank: file systems, tables of
// partitions, encrypted volumes and RAIDs say there that they are.
const edge = 1 << 20

// nothingFound is what blkid ends with if it finds nothing on a device, and also if it could not read it.
const nothingFound = 2

// isBlank says whether there is neither a file system nor a table of partitions on a device. It is an error if that
// cannot be told. What blkid says of the device is believed only if the device could be read, and if blkid says the
// same of what was read there: whoever reads again may be given something else.
func isBlank(ctx context.Context, device string) (bool, error) {
	f, err := os.Open(device)
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	copied, err := edges(f, size)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", device, err)
	}
	defer copied.Close()
	// The device itself as well: some say what they are in the middle.
	for _, of := range []*os.File{f, copied} {
		if found, err := finds(ctx, of); found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// edges is a file in memory as large as a device, with what is at both of its ends.
func edges(device io.ReaderAt, size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("edges", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	out := os.NewFile(uintptr(fd), "edges")
	if err = out.Truncate(size); err == nil {
		err = copyAt(out, device, 0, min(edge, size))
	}
	if err == nil {
		err = copyAt(out, device, max(0, size-edge), min(edge, size))
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// copyAt copies a piece to the same place.
func copyAt(to io.WriterAt, from io.ReaderAt, at, length int64) error {
	piece := make([]byte, length)
	if n, err := from.ReadAt(piece, at); n < len(piece) {
		return err
	}
	_, err := to.WriteAt(piece, at)
	return err
}

// finds has blkid look for what it knows.
func finds(ctx context.Context, in *os.File) (bool, error) {
	cmd := exec.CommandContext(ctx, "blkid", "-p", "-s", "TYPE", "-s", "PTTYPE", "--", "/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{in}
	var said strings.Builder
	cmd.Stderr = &said
	err := cmd.Run()
	if err == nil {
		return true, nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == nothingFound {
		return false, nil
	}
	return false, fmt.Errorf("blkid: %w: %s", err, oneline.Of(said.String()))
}

// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A file with large holes is stored without them: any pod can make one of terabytes, which takes no room, and reading
// its zeros would keep a backup from ever ending. Its entry holds a list of its parts, one line of offset and length
// each, an empty line, and their content.
const sparseSize = "WHERRY.sparse.size" // PAX record: the size of the file, with its holes

// minHoles is how much of a file must be holes for it to be stored so: anything else is plain for every tar.
const minHoles = 1 << 20

// extent is a part of a file that is no hole.
type extent struct{ at, size int64 }

// extents finds the parts of a file that are no holes. A file system that does not report them has none.
func extents(f *os.File, size int64) (parts []extent, stored int64, err error) {
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // a hole to the end
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: find its holes: %w", f.Name(), err)
		}
		hole, err := unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE)
		if err != nil && !errors.Is(err, unix.ENXIO) { // it has become shorter
			return nil, 0, fmt.Errorf("%s: find its holes: %w", f.Name(), err)
		}
		if hole = min(hole, size); hole <= data {
			break
		}
		parts = append(parts, extent{data, hole - data})
		stored += hole - data
		at = hole
	}
	return parts, stored, nil
}

// sparse writes the parts of a file.
func (w *Writer) sparse(h *tar.Header, f *os.File, parts []extent, stored int64) error {
	var list bytes.Buffer
	content := []io.Reader{&list}
	for _, e := range parts {
		fmt.Fprintf(&list, "%d %d\n", e.at, e.size)
		// one that has become shorter meanwhile keeps its place
		part := io.MultiReader(io.NewSectionReader(f, e.at, e.size), zeros{})
		content = append(content, io.LimitReader(part, e.size))
	}
	list.WriteByte('\n')
	h.PAXRecords = map[string]string{sparseSize: strconv.FormatInt(h.Size, 10)}
	h.Size = int64(list.Len()) + stored
	return w.file(h, io.MultiReader(content...))
}

// spread reads what sparse wrote, and puts it into a file; nil: it is only looked at.
func spread(h *tar.Header, from io.Reader, to *os.File) error {
	size, err := strconv.ParseInt(h.PAXRecords[sparseSize], 10, 64)
	if err != nil || size < 0 {
		return errors.New("it has no size")
	}
	in := bufio.NewReader(from)
	parts, err := listed(in, size)
	if err != nil {
		return err
	}
	for _, e := range parts {
		var part io.Writer = io.Discard
		if to != nil {
			part = io.NewOffsetWriter(to, e.at)
		}
		if _, err := io.CopyN(part, in, e.size); err != nil {
			return err
		}
	}
	switch n, err := in.Discard(1); {
	case n != 0:
		return errors.New("there is more in it than its parts")
	case !errors.Is(err, io.EOF):
		return err
	}
	if to == nil {
		return nil
	}
	return to.Truncate(size)
}

// listed reads the list of parts. They follow upon each other, within the file.
func listed(in *bufio.Reader, size int64) (parts []extent, err error) {
	end := int64(0)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("the list of its parts: %w", err)
		}
		if len(line) == 1 {
			return parts, nil
		}
		var e extent
		if n, err := fmt.Sscanf(string(line), "%d %d\n", &e.at, &e.size); n != 2 || err != nil || e.at < end ||
			e.size <= 0 || e.size > size-e.at {
			return nil, fmt.Errorf("the list of its parts has %q", line)
		}
		end = e.at + e.size
		parts = append(parts, e)
	}
}

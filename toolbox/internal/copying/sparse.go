// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// extent is a part of a file that holds data.
type extent struct{ at, size int64 }

// extents finds the data of a file with holes; nil if the file system does not tell.
func extents(fd int, size int64) []extent {
	out := []extent{}
	for at := int64(0); at < size; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // a hole to the end
		}
		if err != nil {
			return nil
		}
		hole, err := unix.Seek(fd, data, unix.SEEK_HOLE)
		if err != nil {
			return nil
		}
		if hole = min(hole, size); hole > data {
			out = append(out, extent{data, hole - data})
		}
		at = hole
	}
	return out
}

// sparse writes a file without its holes, in the form "PAX 1.0" of GNU tar, which archive/tar reads but does not write.
func (p *Packer) sparse(f *os.File, h *tar.Header, data []extent) error {
	var list bytes.Buffer
	fmt.Fprintf(&list, "%d\n", len(data)+1)
	stored := int64(0)
	for _, e := range data {
		fmt.Fprintf(&list, "%d\n%d\n", e.at, e.size)
		stored += e.size
	}
	fmt.Fprintf(&list, "%d\n0\n", h.Size) // where the file ends
	pad(&list)

	records := map[string]string{
		"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": h.Name,
		"GNU.sparse.realsize": strconv.FormatInt(h.Size, 10), "size": strconv.FormatInt(int64(list.Len())+stored, 10),
		"uid": strconv.Itoa(h.Uid), "gid": strconv.Itoa(h.Gid),
		"mtime": fmt.Sprintf("%d.%09d", h.ModTime.Unix(), h.ModTime.Nanosecond()),
	}
	maps.Copy(records, h.PAXRecords)
	var extended bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(records)) {
		extended.WriteString(record(k, records[k]))
	}
	var head bytes.Buffer
	head.Write(block("PaxHeaders/file", 'x', 0o644, int64(extended.Len()), h.ModTime.Unix()))
	head.Write(extended.Bytes())
	pad(&head)
	short := path.Join("GNUSparseFile.0", path.Base(h.Name))
	head.Write(block(short[:min(len(short), 99)], tar.TypeReg, h.Mode, int64(list.Len())+stored, h.ModTime.Unix()))
	head.Write(list.Bytes())

	if err := p.tar.Flush(); err != nil {
		return writeError{err}
	}
	if _, err := p.out.Write(head.Bytes()); err != nil {
		return writeError{err}
	}
	p.Saw(h)
	var short2 error
	for _, e := range data {
		if err := p.copy(p.out, io.NewSectionReader(f, e.at, e.size), e.size); err != nil {
			if w, ok := err.(writeError); ok {
				return w
			}
			short2 = err
		}
	}
	if rest := stored % 512; rest != 0 {
		if _, err := p.out.Write(make([]byte, 512-rest)); err != nil {
			return writeError{err}
		}
	}
	return short2
}

// pad fills up to a whole block.
func pad(b *bytes.Buffer) {
	if rest := b.Len() % 512; rest != 0 {
		b.Write(make([]byte, 512-rest))
	}
}

// record is a line of an extended header; its length counts itself.
func record(key, value string) string {
	size := len(key) + len(value) + 3
	n := size + len(strconv.Itoa(size))
	if len(strconv.Itoa(n)) != len(strconv.Itoa(size)) {
		n++
	}
	return fmt.Sprintf("%d %s=%s\n", n, key, value)
}

// block is a ustar header.
func block(name string, kind byte, mode, size, mtime int64) []byte {
	b := make([]byte, 512)
	copy(b, name)
	octal := func(at, width int, n int64) {
		if n < 0 || n >= 1<<(3*(width-1)) {
			n = 0 // the extended header has it
		}
		copy(b[at:], fmt.Sprintf("%0*o", width-1, n))
	}
	octal(100, 8, mode)
	octal(108, 8, 0)
	octal(116, 8, 0)
	octal(124, 12, size)
	octal(136, 12, mtime)
	copy(b[148:], "        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// holed reports whether an entry was packed without its holes.
func holed(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// copyHoles writes a file and leaves out blocks of zeros.
func copyHoles(w *os.File, r io.Reader, size int64, buffer []byte) error {
	at := int64(0)
	for {
		n, err := io.ReadFull(r, buffer)
		if part := buffer[:n]; n > 0 && len(bytes.TrimLeft(part, "\x00")) > 0 {
			if _, err := w.WriteAt(part, at); err != nil {
				return err
			}
		}
		at += int64(n)
		// of the last piece; before that, the archive is cut off
		if err == io.EOF || err == io.ErrUnexpectedEOF && at == size {
			return w.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}

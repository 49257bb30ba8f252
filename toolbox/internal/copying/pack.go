// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// xattrPrefix is how tar names extended attributes in its records.
const xattrPrefix = "SCHILY.xattr."

// Packer writes files into a tar archive. Holes stay holes, hard links stay links, times keep their nanoseconds.
type Packer struct {
	Problem func(error)                           // what failed of one file; packing goes on
	Note    func(string)                          // what was left out, without being a failure
	Skip    func(name string, i fs.FileInfo) bool // leaves a file, and what is below it, out
	Saw     func(*tar.Header)                     // is told of every file that is in
	After   *Reached                              // what has come of the archive before; nil: nothing
	out     io.Writer
	tar     *tar.Writer
	buffer  []byte
	seen    map[[2]uint64]string // names of files with more than one link
}

// NewPacker returns a Packer that writes to w.
func NewPacker(w io.Writer) *Packer {
	return &Packer{
		Problem: func(error) {}, Note: func(string) {}, Saw: func(*tar.Header) {},
		Skip: func(string, fs.FileInfo) bool { return false },
		out:  w, tar: tar.NewWriter(w), buffer: make([]byte, 256<<10), seen: map[[2]uint64]string{},
	}
}

// Close ends the archive.
func (p *Packer) Close() error { return p.tar.Close() }

// Add packs a file, and a folder with all below it, under a name. An error is one of the archive: there is no going on.
func (p *Packer) Add(path, name string) error {
	dir, base := filepath.Split(strings.TrimRight(path, "/"))
	if base == "" || base == "." || base == ".." {
		dir, base = path, "."
	}
	if dir == "" {
		dir = "."
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.Problem(&fs.PathError{Op: "open", Path: path, Err: err})
		return nil
	}
	defer unix.Close(fd)
	return p.add(fd, base, name)
}

// writeError is a failure of the archive, not of a file.
type writeError struct{ error }

func (w writeError) Unwrap() error { return w.error }

// add packs what stands under base in an open folder.
func (p *Packer) add(dir int, base, name string) error {
	err := p.entry(dir, base, name)
	var fatal writeError
	if errors.As(err, &fatal) {
		return fatal
	}
	if err != nil && !errors.Is(err, unix.ENOENT) { // it went away meanwhile
		p.Problem(&fs.PathError{Op: "pack", Path: name, Err: err})
	}
	return nil
}

func (p *Packer) entry(dir int, base, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	h := header(&st, name)
	if p.Skip(name, h.FileInfo()) {
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return p.folder(dir, base, h)
	case unix.S_IFSOCK:
		p.Note(name + " is a socket: left out")
		return nil
	case unix.S_IFLNK:
		to, err := readlinkat(dir, base)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, to
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFCHR, unix.S_IFBLK:
		h.Typeflag = tar.TypeChar
		if st.Mode&unix.S_IFMT == unix.S_IFBLK {
			h.Typeflag = tar.TypeBlock
		}
		h.Devmajor, h.Devminor = int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	}
	if st.Nlink > 1 {
		id := [2]uint64{st.Dev, st.Ino}
		if first, ok := p.seen[id]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return p.header(h)
		}
		p.seen[id] = name
	}
	if h.Typeflag == tar.TypeReg {
		return p.file(dir, base, h)
	}
	return p.header(h)
}

// header makes the entry of a file, as one of a regular file.
func header(st *unix.Stat_t, name string) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(st.Mtim.Sec, st.Mtim.Nsec), Format: tar.FormatPAX,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag = tar.TypeDir
		h.Name = strings.TrimSuffix(name, "/") + "/"
	case unix.S_IFREG:
		h.Size = st.Size
	}
	return h
}

func (p *Packer) header(h *tar.Header) error {
	if p.After.there(h.Name) {
		return nil
	}
	if err := p.tar.WriteHeader(h); err != nil {
		return writeError{err}
	}
	p.Saw(h)
	return nil
}

func (p *Packer) folder(dir int, base string, h *tar.Header) error {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), h.Name)
	defer f.Close()
	readXattrs(fd, h)
	if err := p.header(h); err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	for _, n := range names {
		if err := p.add(fd, n, h.Name+n); err != nil {
			return err
		}
	}
	return err
}

func (p *Packer) file(dir int, base string, h *tar.Header) error {
	if p.After.before(h.Name) {
		return nil
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), h.Name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it was replaced meanwhile")
	}
	h.Size, h.ModTime = st.Size, time.Unix(st.Mtim.Sec, st.Mtim.Nsec)
	readXattrs(fd, h)
	if p.After != nil {
		if done, err := p.rest(f, h); done || err != nil {
			return err
		}
	}
	if st.Blocks*512 < st.Size && st.Size > 64<<10 {
		if data := extents(fd, st.Size); data != nil {
			return p.sparse(f, h, data)
		}
	}
	if err := p.tar.WriteHeader(h); err != nil {
		return writeError{err}
	}
	p.Saw(h)
	return p.copy(p.tar, f, h.Size)
}

// rest packs what has not come of a file of which something has; done is false if nothing has.
func (p *Packer) rest(f *os.File, h *tar.Header) (done bool, err error) {
	offset := p.After.rest(h)
	if offset == 0 {
		return false, nil
	}
	if offset == h.Size {
		return true, nil
	}
	data := extents(int(f.Fd()), h.Size)
	if data == nil {
		data = []extent{{0, h.Size}}
	}
	if h.PAXRecords == nil {
		h.PAXRecords = map[string]string{}
	}
	h.PAXRecords[OffsetRecord] = strconv.FormatInt(offset, 10)
	return true, p.sparse(f, h, from(data, offset))
}

// copy writes exactly n bytes of a file, whatever became of the file.
func (p *Packer) copy(w io.Writer, f io.Reader, n int64) error {
	var short error
	for n > 0 {
		part := p.buffer[:min(n, int64(len(p.buffer)))]
		got := 0
		var err error
		if short == nil {
			got, err = f.Read(part)
		}
		if got == 0 {
			if short == nil {
				short = fmt.Errorf("the last %d bytes could not be read: %w", n, err)
				clear(p.buffer)
			}
			got = len(part)
		}
		if _, err := w.Write(part[:got]); err != nil {
			return writeError{err}
		}
		n -= int64(got)
	}
	return short
}

func readlinkat(dir int, base string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, base, buf)
	return string(buf[:max(n, 0)]), err
}

// readXattrs adds what extended attributes can be read; those of security modules belong to the machine.
func readXattrs(fd int, h *tar.Header) {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(fd, list); err != nil {
		return
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:size]), "\x00"), "\x00") {
		if !strings.HasPrefix(name, "user.") && name != "security.capability" {
			continue
		}
		value := make([]byte, 64<<10)
		if n, err := unix.Fgetxattr(fd, name, value); err == nil {
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords[xattrPrefix+name] = string(value[:n])
		}
	}
}

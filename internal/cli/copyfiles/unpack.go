// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Unpacker makes in a folder what a tar stream holds: one file or tree, whose first name is replaced by another. Owners
// are the user's own; modes (without setuid) and times are kept. Devices and the like are left out and reported. An
// existing file is replaced when the new one is whole; an existing folder is added to; a device, pipe or socket that is
// in the way is an error. Where a stream was cut, it goes on with a second one.
type Unpacker struct {
	root    *os.Root
	name    string
	skipped func(path, why string)
	made    int
	folders []made // whose modes and times come last: files are made in them until then
	reached Reached
	part    *part // of a file that is not whole; nil: none
	there   bool  // all that was asked for
}

// New returns an Unpacker into a folder; name takes the place of the first name, and skipped is called with what is
// left out.
func New(folder, name string, skipped func(path, why string)) (*Unpacker, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	return &Unpacker{root: root, name: name, skipped: skipped}, nil
}

// Close takes away what is not whole. All is in place only where From has succeeded.
func (u *Unpacker) Close() error {
	u.drop()
	return u.root.Close()
}

// Whole reports whether all that was asked for is in place: the stream has come to its end, or was of one file, which
// has its name already.
func (u *Unpacker) Whole() bool { return u.there }

// From reads a stream. After an error that is Cut, another one may follow that goes on from where Reached says.
func (u *Unpacker) From(r io.Reader) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			err := u.finish()
			u.there = err == nil
			return err
		case errors.Is(err, io.ErrUnexpectedEOF):
			return cut{err}
		case err != nil:
			return fmt.Errorf("the tar stream is damaged: %w", err)
		}
		if err := u.entry(h, t); err != nil {
			return err
		}
		u.reached.pass(h)
	}
}

type made struct {
	path string
	mode fs.FileMode
	at   time.Time
}

func (u *Unpacker) entry(h *tar.Header, content io.Reader) error {
	to, err := u.place(h.Name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode) & fs.ModePerm
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.MkdirAll(to, 0o700); err != nil {
			return err
		}
		u.folders = append(u.folders, made{to, mode, h.ModTime})
	case tar.TypeReg:
		if err := u.file(to, mode, h, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := u.replace(to); err != nil {
			return err
		}
		if err := u.root.Symlink(h.Linkname, to); err != nil {
			return err
		}
	case tar.TypeLink:
		from, err := u.place(h.Linkname)
		if err != nil {
			return err
		}
		if err := u.replace(to); err != nil {
			return err
		}
		if err := u.root.Link(from, to); err != nil {
			return err
		}
	case tar.TypeXGlobalHeader:
		return nil
	default:
		u.skipped(h.Name, "not a file, folder or link")
		return nil
	}
	u.made++
	return nil
}

// place is where an entry goes, below the root. Names that leave it are refused, not bent.
func (u *Unpacker) place(name string) (string, error) {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("the tar stream contains the name %q, which is outside the folder: refused", name)
	}
	_, rest, _ := strings.Cut(clean, "/")
	switch {
	case clean == ".":
		rest = ""
	case strings.HasPrefix(name, "./"): // all of a folder: that is what is cut off
		rest = clean
	}
	return path.Join(u.name, rest), nil
}

// replace makes room for what is not a folder.
func (u *Unpacker) replace(to string) error {
	info, err := u.root.Lstat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := u.replaceable(to, info); err != nil {
		return err
	}
	return u.root.Remove(to)
}

// replaceable refuses what a copy must not take away: folders, and what programs open by its name to reach each other
// or a device.
func (u *Unpacker) replaceable(to string, there fs.FileInfo) error {
	full := path.Join(u.root.Name(), to)
	switch {
	case there.IsDir():
		return fmt.Errorf("%s is a folder: refusing to replace it with a file", full)
	case there.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeIrregular) != 0:
		return fmt.Errorf("%s is a device, pipe or socket: refusing to replace it with a file", full)
	}
	return nil
}

// withHoles writes a file from at on, counts there what it has written, and leaves holes where there are nothing but
// zeros. A container's file may be terabytes of holes, which took no room there and would fill the disk here.
func withHoles(f *os.File, content io.Reader, at *int64, size int64) error {
	buffer := make([]byte, 256<<10)
	for {
		n, err := io.ReadFull(content, buffer)
		for part := buffer[:n]; len(part) > 0; {
			data, zeros := split(part)
			if len(data) > 0 {
				if _, err := f.WriteAt(data, *at); err != nil {
					return err
				}
			}
			*at += int64(len(data) + zeros)
			part = part[len(data)+zeros:]
		}
		switch {
		// of the last piece, not of the archive
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && *at == size:
			return f.Truncate(size)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return cut{err}
		case err != nil:
			return err
		}
	}
}

// block is how many zeros one after the other are worth a hole.
const block = 4096

// split finds how a part of a file begins: with data, and so many zeros after it, in whole blocks.
func split(part []byte) (data []byte, zeros int) {
	var none [block]byte
	empty := func(at int) (int, bool) {
		end := min(at+block, len(part))
		return end, bytes.Equal(part[at:end], none[:end-at])
	}
	at := 0
	for at < len(part) {
		end, is := empty(at)
		if is {
			break
		}
		at = end
	}
	data = part[:at]
	for at < len(part) {
		end, is := empty(at)
		if !is {
			break
		}
		at = end
	}
	return data, at - len(data)
}

// finish gives the folders their modes and times, the innermost first.
func (u *Unpacker) finish() error {
	if u.part != nil { // of which the rest has not come
		return fmt.Errorf("%s was removed or replaced while it was copied", u.part.name)
	}
	for i := len(u.folders) - 1; i >= 0; i-- {
		f := u.folders[i]
		if err := errors.Join(u.root.Chtimes(f.path, f.at, f.at), u.root.Chmod(f.path, f.mode)); err != nil {
			return err
		}
	}
	return nil
}

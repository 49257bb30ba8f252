// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Unpack makes in folder what a tar stream holds: one file or tree, whose first name is replaced by name. Owners are
// the user's own; modes (without setuid) and times are kept. Devices and the like are left out and reported to skipped.
// An existing file is replaced when the new one is whole; an existing folder is added to; a device, pipe or socket that
// is in the way is an error. It returns how many entries were made.
func Unpack(r io.Reader, folder, name string, skipped func(path, why string)) (int, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	u := &unpacker{root: root, name: name, skipped: skipped}
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return u.made, u.finish()
		}
		if err != nil {
			return u.made, fmt.Errorf("the tar stream is damaged: %w", err)
		}
		if err := u.entry(h, t); err != nil {
			return u.made, err
		}
	}
}

type unpacker struct {
	root    *os.Root
	name    string
	skipped func(path, why string)
	made    int
	folders []made // whose modes and times come last: files are made in them until then
}

type made struct {
	path string
	mode fs.FileMode
	at   time.Time
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
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
func (u *unpacker) place(name string) (string, error) {
	clean := path.Clean(name)
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("the tar stream contains the name %q, which is outside the folder: refused", name)
	}
	_, rest, _ := strings.Cut(clean, "/")
	if clean == "." {
		rest = ""
	}
	return path.Join(u.name, rest), nil
}

// replace makes room for what is not a folder.
func (u *unpacker) replace(to string) error {
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
func (u *unpacker) replaceable(to string, there fs.FileInfo) error {
	full := path.Join(u.root.Name(), to)
	switch {
	case there.IsDir():
		return fmt.Errorf("%s is a folder: refusing to replace it with a file", full)
	case there.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeIrregular) != 0:
		return fmt.Errorf("%s is a device, pipe or socket: refusing to replace it with a file", full)
	}
	return nil
}

// file writes a file under a name of its own first, so that one which was cut off never stands under the name that was
// asked for.
func (u *unpacker) file(to string, mode fs.FileMode, h *tar.Header, content io.Reader) error {
	if info, err := u.root.Lstat(to); err == nil {
		if err := u.replaceable(to, info); err != nil {
			return err
		}
	}
	part := path.Join(path.Dir(to), partPrefix+rand.Text())
	if err := u.write(part, mode, h, content); err != nil {
		_ = u.root.Remove(part) // it may not have come about
		return fmt.Errorf("%s: %w", path.Join(u.root.Name(), to), err)
	}
	if err := u.root.Rename(part, to); err != nil {
		_ = u.root.Remove(part)
		return err
	}
	return nil
}

// partPrefix begins the names of files that are not whole yet.
const partPrefix = ".wherry-cp-"

func (u *unpacker) write(to string, mode fs.FileMode, h *tar.Header, content io.Reader) error {
	f, err := u.root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o200)
	if err != nil {
		return err
	}
	err = withHoles(f, content, h.Size)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(to, h.ModTime, h.ModTime)
}

// withHoles writes a file and leaves holes where there are nothing but zeros. A container's file may be terabytes of
// holes, which took no room there and would fill the disk here.
func withHoles(f *os.File, content io.Reader, size int64) error {
	buffer := make([]byte, 256<<10)
	var zeros [4096]byte
	for at := int64(0); ; {
		n, err := io.ReadFull(content, buffer)
		for part := range slices.Chunk(buffer[:n], len(zeros)) {
			if !bytes.Equal(part, zeros[:len(part)]) {
				if _, err := f.WriteAt(part, at); err != nil {
					return err
				}
			}
			at += int64(len(part))
		}
		switch {
		// of the last piece, not of the archive
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && at == size:
			return f.Truncate(size)
		case err != nil:
			return err
		}
	}
}

// finish gives the folders their modes and times, the innermost first.
func (u *unpacker) finish() error {
	for i := len(u.folders) - 1; i >= 0; i-- {
		f := u.folders[i]
		if err := errors.Join(u.root.Chtimes(f.path, f.at, f.at), u.root.Chmod(f.path, f.mode)); err != nil {
			return err
		}
	}
	return nil
}

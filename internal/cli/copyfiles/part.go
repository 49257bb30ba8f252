// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// offsetRecord is the record of an entry of which only the rest comes: what is before is a hole in it.
const offsetRecord = "WHERRY.offset"

// Reached is how far a stream has come, for somebody who is asked to go on from there.
type Reached struct {
	name                 string
	offset, size, change int64
}

// String is what the toolbox's cp-pack --after understands: OFFSET:SIZE:NANOSECONDS:NAME; "" if nothing has come.
func (r Reached) String() string {
	if r.name == "" {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%s", r.offset, r.size, r.change, r.name)
}

// pass notes that an entry is there, whole.
func (r *Reached) pass(h *tar.Header) {
	if h.Typeflag != tar.TypeXGlobalHeader {
		*r = Reached{name: strings.TrimSuffix(h.Name, "/"), offset: h.Size, size: h.Size, change: h.ModTime.UnixNano()}
	}
}

// cut is the end of a stream in its middle.
type cut struct{ error }

// Unwrap is for package errors.
func (c cut) Unwrap() error { return c.error }

// Cut reports whether an error is the end of a stream in its middle, and no other trouble.
func Cut(err error) bool {
	_, is := errors.AsType[cut](err)
	return is
}

// Reached is how far the streams have come.
func (u *Unpacker) Reached() Reached {
	r := u.reached
	if p := u.part; p != nil && p.at > 0 {
		r = Reached{name: p.name, offset: p.at, size: p.size, change: p.change}
	}
	return r
}

// part is a file that is not whole yet. It has a name of its own, so that one which was cut off never stands under the
// name that was asked for.
type part struct {
	name         string // in the stream
	path         string
	file         *os.File
	at           int64
	size, change int64
}

// partPrefix begins the names of files that are not whole yet.
const partPrefix = ".wherry-cp-"

// drop takes away the part of a file that will not be whole.
func (u *Unpacker) drop() {
	if p := u.part; p != nil {
		p.file.Close()
		_ = u.root.Remove(p.path) // it may be gone with its folder
		u.part = nil
	}
}

// file makes a file, or goes on with the part of it that is there. What is cut off stays until Close.
func (u *Unpacker) file(to string, mode fs.FileMode, h *tar.Header, content io.Reader) error {
	if info, err := u.root.Lstat(to); err == nil {
		if err := u.replaceable(to, info); err != nil {
			return err
		}
	}
	err := u.begin(to, mode, h, content)
	if err == nil {
		err = withHoles(u.part.file, content, &u.part.at, h.Size)
	}
	if err == nil {
		err = u.whole(to, mode, h)
	}
	if err != nil && !Cut(err) {
		u.drop()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(u.root.Name(), to), err)
	}
	return nil
}

// begin opens the part of a file that a stream's entry is about.
func (u *Unpacker) begin(to string, mode fs.FileMode, h *tar.Header, content io.Reader) error {
	if rest, ok := h.PAXRecords[offsetRecord]; ok {
		p := u.part
		if p == nil || p.name != h.Name || rest != strconv.FormatInt(p.at, 10) || p.size != h.Size {
			return errors.New("the tar stream has the rest of a file of which the beginning is not here")
		}
		_, err := io.CopyN(io.Discard, content, p.at)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return cut{io.ErrUnexpectedEOF}
		}
		return err
	}
	u.drop()
	p := &part{name: h.Name, path: path.Join(path.Dir(to), partPrefix+rand.Text()), size: h.Size,
		change: h.ModTime.UnixNano()}
	var err error
	if p.file, err = u.root.OpenFile(p.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o200); err != nil {
		return err
	}
	u.part = p
	return nil
}

// whole puts a file that is whole where it belongs.
func (u *Unpacker) whole(to string, mode fs.FileMode, h *tar.Header) error {
	p := u.part
	err := errors.Join(p.file.Chmod(mode), p.file.Close(), u.root.Chtimes(p.path, h.ModTime, h.ModTime))
	if err == nil {
		err = u.root.Rename(p.path, to)
	}
	if err == nil {
		u.part = nil
		u.there = u.there || to == u.name
	}
	return err
}

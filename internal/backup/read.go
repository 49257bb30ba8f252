// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrNot says that a file is no backup.
var ErrNot = errors.New("is not a wherry backup")

// ErrBroken says that a backup is cut short or was changed after it was written.
var ErrBroken = errors.New("is damaged")

// maxSmall bounds what is read into memory: the header, and the checksums.
const maxSmall = 256 << 20

// Verify reads a whole backup and compares every checksum.
func Verify(from io.Reader) (Header, error) { return read(from, nil) }

// Unpack verifies a backup and writes what is in it below folder, which must be empty. What it returns without an error
// is whole; with one, what is in folder must not be used.
func Unpack(from io.Reader, folder string) (Header, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Header{}, err
	}
	defer root.Close()
	return read(from, root)
}

func read(from io.Reader, into *os.Root) (Header, error) {
	buffered := bufio.NewReader(from)
	zip, err := gzip.NewReader(buffered)
	if err != nil {
		return Header{}, ErrNot
	}
	r := &reader{tar: tar.NewReader(zip), into: into, sums: map[string]bool{}}
	if err := r.begin(); err != nil {
		return r.header, err
	}
	for !r.ended {
		if err := r.next(); err != nil {
			return r.header, err
		}
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // gzip's own checksum
		return r.header, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return r.header, r.finish()
}

// reader reads one backup.
type reader struct {
	tar    *tar.Reader
	into   *os.Root // nil: nothing is written
	header Header
	sums   map[string]bool // lines that the last entry must have
	ended  bool
	dirs   []*tar.Header // their modes and times are set last
}

// begin reads the first entry, which says whether this is a backup at all and whether it can be read.
func (r *reader) begin() error {
	h, err := r.tar.Next()
	if err != nil || h.Name != HeaderName || h.Size > maxSmall {
		return ErrNot
	}
	text, err := io.ReadAll(r.tar)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if err := json.Unmarshal(text, &r.header); err != nil || r.header.Format < 1 {
		return ErrNot
	}
	if r.header.Format > Format {
		return fmt.Errorf("was written by wherry %s in format %d; this wherry reads up to %d: use that version or newer", r.header.Wherry, r.header.Format, Format)
	}
	sum := sha256.Sum256(text)
	r.sums[sumLine(hex.EncodeToString(sum[:]), HeaderName)] = true
	return nil
}

func (r *reader) next() error {
	h, err := r.tar.Next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: its end is missing", ErrBroken)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	switch {
	case h.Name == SumsName:
		r.ended = true
		return r.compare(h)
	case h.Typeflag == tar.TypeReg:
		return r.file(h)
	case h.Typeflag == tar.TypeDir:
		r.dirs = append(r.dirs, h)
		if r.into == nil {
			return nil
		}
		return r.into.MkdirAll(filepath.FromSlash(h.Name), 0o700)
	case h.Typeflag == tar.TypeSymlink:
		if r.into == nil {
			return nil
		}
		return errors.Join(r.into.Symlink(h.Linkname, h.Name), r.into.Lchown(h.Name, h.Uid, h.Gid))
	}
	return fmt.Errorf("%w: %q is not a file, folder or link", ErrBroken, h.Name)
}

func (r *reader) file(h *tar.Header) (err error) {
	sum := sha256.New()
	var to *os.File
	if r.into != nil {
		if err := r.into.MkdirAll(filepath.Dir(h.Name), 0o700); err != nil {
			return err
		}
		f, err := r.into.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, f.Chown(h.Uid, h.Gid), f.Chmod(modeOf(h)), f.Close())
			if err == nil {
				err = r.into.Chtimes(h.Name, time.Time{}, h.ModTime)
			}
		}()
		to = f
	}
	if err := contentOf(h, io.TeeReader(r.tar, sum), to); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBroken, h.Name, err)
	}
	r.sums[sumLine(hex.EncodeToString(sum.Sum(nil)), h.Name)] = true
	return nil
}

// contentOf reads the content of an entry, and writes it to a file; nil: it is only looked at.
func contentOf(h *tar.Header, from io.Reader, to *os.File) error {
	if h.PAXRecords[sparseSize] != "" {
		return spread(h, from, to)
	}
	all := io.Discard
	if to != nil {
		all = to
	}
	_, err := io.Copy(all, from)
	return err
}

// modeOf is what a file's mode was, without its kind.
func modeOf(h *tar.Header) os.FileMode {
	return h.FileInfo().Mode() & (os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky)
}

// compare holds the checksums of what was read against those written.
func (r *reader) compare(h *tar.Header) error {
	if h.Size > maxSmall {
		return fmt.Errorf("%w: its checksums cannot be read", ErrBroken)
	}
	text, err := io.ReadAll(r.tar)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	n := 0
	for line := range bytes.Lines(text) {
		if !r.sums[string(line)] {
			return fmt.Errorf("%w: a checksum does not fit: %s", ErrBroken, bytes.TrimSpace(line))
		}
		n++
	}
	if n != len(r.sums) {
		return fmt.Errorf("%w: it holds %d files and checksums for %d", ErrBroken, len(r.sums), n)
	}
	return nil
}

// finish gives folders their modes, once nothing is written into them any more.
func (r *reader) finish() error {
	if r.into == nil {
		return nil
	}
	var errs []error
	for i := len(r.dirs) - 1; i >= 0; i-- {
		h := r.dirs[i]
		errs = append(errs, r.into.Chown(h.Name, h.Uid, h.Gid), r.into.Chmod(h.Name, modeOf(h)),
			r.into.Chtimes(h.Name, time.Time{}, h.ModTime))
	}
	return errors.Join(errs...)
}

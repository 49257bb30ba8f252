// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Format is the highest version of the layout that Writer writes and a reader reads. Only backups with volumes have it:
// since version 2, files with large holes are stored without them; since version 3 the volumes of claims are among
// them, which an older program would leave out without a word. Everything else is of version 1.
const Format = 3

// Names in the archive.
const (
	HeaderName = "wherry-backup.json"
	StoreName  = "store.db" // etcd's database
	KeysDir    = "keys"     // files of the data folder, by their paths there
	VolumesDir = "volumes"  // <pod UID>/<volume name>/…
	ClaimsDir  = "claims"   // <PersistentVolume's name>/…
	SumsName   = "SHA256SUMS"
)

// Header says what a backup holds.
type Header struct {
	Format     int       `json:"format"`
	Created    time.Time `json:"created"`
	Wherry     string    `json:"wherry"`     // program that wrote it
	Kubernetes string    `json:"kubernetes"` // API version of the objects
	Node       string    `json:"node"`
	Revision   int64     `json:"revision"` // of the store: of the newest change
	Keys       bool      `json:"keys"`     // the CA, the keys and the logins at registries are in it
	Volumes    bool      `json:"volumes"`  // the pods' emptyDir volumes and those of claims are in it
}

// Writer writes a backup. Its methods are for one goroutine.
type Writer struct {
	zip  *gzip.Writer
	tar  *tar.Writer
	sums bytes.Buffer

	holes bool // files may be stored without their holes
}

// NewWriter begins a backup. Format is filled in.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	zip := gzip.NewWriter(to)
	w := &Writer{zip: zip, tar: tar.NewWriter(zip)}
	if h.Format = 1; h.Volumes {
		h.Format, w.holes = Format, true
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return w, w.file(&tar.Header{Name: HeaderName, Mode: 0o600, Size: int64(len(text)), ModTime: h.Created},
		bytes.NewReader(text))
}

// file writes one regular file and notes its checksum.
func (w *Writer) file(h *tar.Header, content io.Reader) error {
	h.Typeflag, h.Format = tar.TypeReg, tar.FormatPAX
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), io.LimitReader(content, h.Size))
	if err != nil {
		return err
	}
	if n < h.Size { // a file of a volume that has become shorter meanwhile
		if _, err := io.CopyN(io.MultiWriter(w.tar, sum), zeros{}, h.Size-n); err != nil {
			return err
		}
	}
	w.sums.WriteString(sumLine(hex.EncodeToString(sum.Sum(nil)), h.Name))
	return nil
}

// sumLine is a line of sha256sum's: with a backslash before it if the name has what would break the line.
func sumLine(sum, name string) string {
	escaped := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	if escaped != name {
		sum = `\` + sum
	}
	return sum + "  " + escaped + "\n"
}

// Add writes a file of this machine under a name of the archive.
func (w *Writer) Add(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.content(name, f)
}

func (w *Writer) content(name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	h.Name = name
	if !w.holes || name == StoreName {
		return w.file(h, f)
	}
	parts, stored, err := extents(f, h.Size)
	if err != nil {
		return err
	}
	if h.Size-stored >= minHoles {
		return w.sparse(h, f, parts, stored)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.file(h, f)
}

// AddTree writes a folder, or a file, with all in it under a name of the archive, with owners and modes. What is
// mounted there belongs to somebody else and is left out, as are sockets and devices, and what lies deeper than a path
// can say (maxPath). Files that vanish meanwhile are left out too.
//
// Whoever writes in the folder meanwhile cannot lead this out of it: no link is followed out of it, and what was a file
// a moment ago and is a pipe now is left out. What a pod was not allowed to read would be in its volume after a restore
// otherwise.
func (w *Writer) AddTree(name, from string) error {
	root, err := os.OpenRoot(filepath.Dir(from))
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(filepath.Base(from))
	if err != nil {
		return err
	}
	if info.IsDir() { // links in it must not lead even beside it
		inner, err := root.OpenRoot(filepath.Base(from))
		if err != nil {
			return err
		}
		defer inner.Close()
		return (&tree{w, inner, device(info)}).add(name, ".")
	}
	return (&tree{w, root, device(info)}).add(name, filepath.Base(from))
}

// maxPath is how long a path in a tree may be, as for the kernel: each step into a folder is taken anew for each file
// in it.
const maxPath = 4096

// tree is a folder on its way into a backup.
type tree struct {
	*Writer
	root   *os.Root
	device uint64
}

// add writes what is at a path, whatever it is now.
func (t *tree) add(name, p string) error {
	info, err := t.root.Lstat(p)
	switch {
	case err != nil:
		return gone(err)
	case device(info) != t.device || len(p) > maxPath:
		return nil
	case info.Mode().IsRegular():
		return t.regular(name, p)
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(p)
		if err != nil {
			return gone(err)
		}
		return t.header(name, to, info)
	case info.IsDir():
		if err := t.header(name, "", info); err != nil {
			return err
		}
		return t.folder(name, p)
	}
	return nil
}

func (t *tree) header(name, to string, info fs.FileInfo) error {
	h, err := tar.FileInfoHeader(info, to)
	if err != nil {
		return err
	}
	h.Name, h.Format = name, tar.FormatPAX
	return t.tar.WriteHeader(h)
}

// regular writes a file that was a regular one a moment ago. A pipe that has taken its place holds up nobody.
func (t *tree) regular(name, p string) error {
	f, err := t.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return gone(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || device(info) != t.device {
		return err
	}
	return t.content(name, f)
}

func (t *tree) folder(name, p string) error {
	d, err := t.root.OpenFile(p, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return gone(err)
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return gone(err)
	}
	slices.Sort(names)
	for _, n := range names {
		if err := t.add(path.Join(name, n), filepath.Join(p, n)); err != nil {
			return err
		}
	}
	return nil
}

// gone drops the error of a file that is no longer there, or is no longer what it was.
func gone(err error) error {
	for _, e := range []error{fs.ErrNotExist, syscall.ELOOP, syscall.ENOTDIR, syscall.ENXIO, syscall.EINVAL} {
		if errors.Is(err, e) {
			return nil
		}
	}
	// A way that leads out of the folder now: [os.Root]'s own error, which has no name.
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		if _, machine := errors.AsType[syscall.Errno](at.Err); !machine {
			return nil
		}
	}
	return err
}

func device(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Dev
	}
	return 0
}

// Close ends the backup with its checksums. Without it there is none.
func (w *Writer) Close() error {
	text := w.sums.Bytes()
	if err := w.tar.WriteHeader(&tar.Header{Name: SumsName, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := w.tar.Write(text); err != nil {
		return err
	}
	if err := w.tar.Close(); err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("ending the backup: %w", err)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

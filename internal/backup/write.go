// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Format is the version of the layout that Writer writes. A reader refuses a higher one.
const Format = 1

// Names in the archive.
const (
	HeaderName = "wherry-backup.json"
	StoreName  = "store.db" // etcd's database
	KeysDir    = "keys"     // files of the data folder, by their paths there
	VolumesDir = "volumes"  // <pod UID>/<volume name>/…
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
	Volumes    bool      `json:"volumes"`  // the pods' emptyDir volumes are in it
}

// Writer writes a backup. Its methods are for one goroutine.
type Writer struct {
	zip  *gzip.Writer
	tar  *tar.Writer
	sums bytes.Buffer
}

// NewWriter begins a backup. Format is filled in.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	zip := gzip.NewWriter(to)
	w := &Writer{zip: zip, tar: tar.NewWriter(zip)}
	h.Format = Format
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return w, w.file(&tar.Header{Name: HeaderName, Mode: 0o600, Size: int64(len(text)), ModTime: h.Created}, bytes.NewReader(text))
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
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	h.Name = name
	return w.file(h, f)
}

// AddTree writes a folder with all in it under a name of the archive, with owners and modes. What is mounted there belongs to
// somebody else and is left out, as are sockets and devices. Files that vanish meanwhile are left out too.
func (w *Writer) AddTree(name, from string) error {
	root, err := os.Lstat(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		info, err := os.Lstat(p)
		if err != nil {
			return gone(err)
		}
		if device(info) != device(root) {
			if info.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		return gone(w.node(path.Join(name, filepath.ToSlash(rel)), p, info))
	})
}

func (w *Writer) node(name, from string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return w.Add(name, from)
	case info.IsDir(), info.Mode()&fs.ModeSymlink != 0:
		to := ""
		if !info.IsDir() {
			var err error
			if to, err = os.Readlink(from); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, to)
		if err != nil {
			return err
		}
		h.Name, h.Format = name, tar.FormatPAX
		return w.tar.WriteHeader(h)
	}
	return nil
}

// gone drops the error of a file that is no longer there.
func gone(err error) error {
	if os.IsNotExist(err) {
		return nil
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

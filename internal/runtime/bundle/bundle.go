// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Names of the bundled files.
const (
	Runc  = "runc"
	Shim  = "containerd-shim-runc-v2"
	CNI   = "wherry-cni"
	Pause = "pause.tar" // an OCI image archive; not a program, and not unpacked
)

// ErrNotBuilt is returned when this binary was built without its helper programs.
var ErrNotBuilt = errors.New("this wherry was built without its helper programs: run make build")

//go:embed all:bin
var embedded embed.FS

// Files is a set of bundled files.
type Files struct{ fsys fs.FS }

// Embedded returns the files built into this binary.
func Embedded() Files {
	sub, err := fs.Sub(embedded, "bin")
	if err != nil {
		panic(err) // only for an invalid path
	}
	return Files{sub}
}

// Unpack writes the helper programs into dir, mode 0755. Files that have the right content already are not touched.
func (f Files) Unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpack helper programs: %w", err)
	}
	for _, name := range []string{Runc, Shim, CNI} {
		data, err := f.read(name)
		if err != nil {
			return err
		}
		if err := place(filepath.Join(dir, name), data); err != nil {
			return fmt.Errorf("unpack helper program %s: %w", name, err)
		}
	}
	return nil
}

// PauseImage returns the pause image's archive and a short hash of it, by which a data folder knows whether it has
// this very image already.
func (f Files) PauseImage() (archive []byte, hash string, err error) {
	data, err := f.read(Pause)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:6]), nil
}

func (f Files) read(name string) ([]byte, error) {
	data, err := fs.ReadFile(f.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (%s is missing)", ErrNotBuilt, name)
	}
	return data, err
}

// place makes path a program with this content.
func place(path string, data []byte) error {
	same, err := holds(path, data)
	if err != nil || same {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Chmod(0o755), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// holds reports whether path is an executable file with exactly this content. Reading it is cheaper than hashing both.
func holds(path string, data []byte) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() != int64(len(data)) || info.Mode().Perm() != 0o755 {
		return false, nil
	}
	buf := make([]byte, 128<<10)
	for len(data) > 0 {
		n, err := io.ReadFull(file, buf[:min(len(buf), len(data))])
		if err != nil {
			return false, err
		}
		if !bytes.Equal(buf[:n], data[:n]) {
			return false, nil
		}
		data = data[n:]
	}
	return true, nil
}

// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bufio"
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
	"strings"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

// Names of the bundled files.
const (
	Runc  = "runc"
	Shim  = "containerd-shim-wherry-v1" // what containerd starts for a pod
	Serve = "wherry-shim"               // and what that starts to serve it
	Stock = "containerd-shim-runc-v2"   // containerd's own, which can be chosen instead
	CNI   = "wherry-cni"
	// First is the first process of a debugger, Session the process of a cluster's debug session. A node's folder has
	// neither.
	First   = "wherry-first"
	Session = "wherry-session"
	Pause   = "pause.tar" // an OCI image archive; not a program, and not unpacked

	Toolbox = "toolbox.tar" // another one
)

const (
	packed    = ".zst"       // after the name of a program, which is carried compressed
	sumsFile  = "SHA256SUMS" // of the programs unpacked and of the images, as sha256sum prints them; written by make
	stampFile = ".unpacked"  // in the folder they were unpacked to: what was seen to be right, by size and time
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
//
// It runs at every start, so it looks at content, 20 MB of it unpacked, only when size or time of a file are not those
// it had when it was last seen to be right; and it leaves the embedded copies alone, which then take no memory.
func (f Files) Unpack(dir string) error {
	programs := []string{Runc, Shim, Serve, Stock, CNI}
	sums, err := f.sums(programs...)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("unpack helper programs: %w", err)
	}
	stamp, _ := os.ReadFile(filepath.Join(dir, stampFile)) // without it all is looked at
	var placing errgroup.Group
	for _, name := range programs {
		path := filepath.Join(dir, name)
		if line := state(path, sums[name]); line != "" && bytes.Contains(stamp, []byte(line)) {
			continue
		}
		placing.Go(func() error {
			if err := f.place(name, path, sums[name]); err != nil {
				return fmt.Errorf("unpack helper program %s: %w", name, err)
			}
			return nil
		})
	}
	if err := placing.Wait(); err != nil {
		return err
	}
	var now strings.Builder
	for _, name := range programs {
		now.WriteString(state(filepath.Join(dir, name), sums[name]))
	}
	if now.String() == string(stamp) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, stampFile), []byte(now.String()), 0o644); err != nil {
		return fmt.Errorf("unpack helper programs: %w", err)
	}
	return nil
}

// state is a line that says what a file with this sum looks like now, or nothing if it is not a program.
func state(path, sum string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o755 {
		return ""
	}
	return fmt.Sprintf("%s %d %d %s\n", sum, info.Size(), info.ModTime().UnixNano(), filepath.Base(path))
}

// PauseImage opens the pause image's archive. Its hash (12 digits) shows whether a data folder has this very image.
func (f Files) PauseImage() (open func() (fs.File, error), hash string, err error) {
	sums, err := f.sums(Pause)
	if err != nil {
		return nil, "", err
	}
	return func() (fs.File, error) { return f.fsys.Open(Pause) }, sums[Pause][:12], nil
}

// ToolboxImage opens the debug image's archive. Its hash (12 digits) shows whether a data folder has this very image.
func (f Files) ToolboxImage() (open func() (fs.File, error), hash string, err error) {
	sums, err := f.sums(Toolbox)
	if err != nil {
		return nil, "", err
	}
	return func() (fs.File, error) { return f.fsys.Open(Toolbox) }, sums[Toolbox][:12], nil
}

// sums reads the checksums of the bundled files, among which some must be. Not every program carries all: that of
// another architecture's image has what debugging needs.
func (f Files) sums(needed ...string) (map[string]string, error) {
	file, err := f.fsys.Open(sumsFile)
	if err != nil {
		return nil, fmt.Errorf("%w (%s is missing)", ErrNotBuilt, sumsFile)
	}
	defer file.Close()
	sums := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok && len(sum) == 2*sha256.Size {
			sums[name] = sum
		}
	}
	for _, name := range needed {
		if sums[name] == "" {
			return nil, fmt.Errorf("%w (%s is missing)", ErrNotBuilt, name)
		}
	}
	return sums, lines.Err()
}

// place makes path a program with the content of a bundled file, unless it is already.
func (f Files) place(name, path, sum string) error {
	same, err := holds(path, sum)
	if err != nil || same {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := f.write(name, tmp, sum); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Chmod(0o755), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// WriteProgram writes a helper program. What was written is the program only if there is no error.
func (f Files) WriteProgram(name string, to io.Writer) error {
	sums, err := f.sums(name)
	if err != nil {
		return err
	}
	return f.write(name, to, sums[name])
}

// write unpacks a program that has to have a sum.
func (f Files) write(name string, to io.Writer, sum string) error {
	file, err := f.fsys.Open(name + packed)
	if err != nil {
		return fmt.Errorf("%w (%s is missing)", ErrNotBuilt, name)
	}
	defer file.Close()
	from, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1)) // the programs are unpacked beside one another
	if err != nil {
		return err
	}
	defer from.Close()
	hash := sha256.New()
	if _, err := io.Copy(to, io.TeeReader(from, hash)); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%w (%s does not match its checksum)", ErrNotBuilt, name)
	}
	return nil
}

// holds reports whether path is a program with this sum.
func holds(path, sum string) (bool, error) {
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
	if info.Mode() != 0o755 {
		return false, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return false, err
	}
	return hex.EncodeToString(hash.Sum(nil)) == sum, nil
}

// SPDX-License-Identifier: Apache-2.0

package staticpods

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wherryproject/wherry/internal/manifest"
)

// reading is a manifest that was looked at.
type reading struct {
	place string
	text  []byte
	err   error // why it cannot be read
	again bool  // it was taken away and put back since the last look
}

// folder looks through a folder of manifests, or a single one.
type folder struct {
	path   string
	stamps map[string]stamp // of the files read last, by path
	again  map[string]bool  // files that were taken away since what they hold was last understood
}

// stamp reports whether a file may have changed.
type stamp struct {
	changed time.Time
	size    int64
	inode   uint64
}

// look returns what files there are, and of those that have changed since the last look what they hold. Again and busy
// are what the watch has seen: files that were taken away meanwhile, and files that somebody is writing.
func (f *folder) look(again, busy map[string]bool) (present []string, changed []reading, err error) {
	for p := range again {
		f.again[p] = true
	}
	present, err = f.list()
	if err != nil {
		return nil, nil, err
	}
	// A listing that runs beside a rename may show neither name: what is gone is gone only if a second one says so.
	for known := range f.stamps {
		if !slices.Contains(present, known) {
			if present, err = f.list(); err != nil {
				return nil, nil, err
			}
			break
		}
	}
	for known := range f.stamps {
		if !slices.Contains(present, known) {
			delete(f.stamps, known)
		}
	}
	maps.DeleteFunc(f.again, func(p string, _ bool) bool { return !slices.Contains(present, p) })
	for _, p := range present {
		if busy[p] {
			continue
		}
		if r, ok := f.read(p); ok {
			changed = append(changed, r)
		}
	}
	return present, changed, nil
}

// list names the files. Hidden ones are not manifests: editors and tools have theirs there. A folder that is not there
// holds nothing.
func (f *folder) list() ([]string, error) {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{f.path}, nil
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			out = append(out, filepath.Join(f.path, e.Name()))
		}
	}
	return out, nil
}

// read reads a file if it may hold something else than before.
func (f *folder) read(path string) (reading, bool) {
	again := f.again[path]
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !dangling(path) {
		return reading{}, false // gone meanwhile: the next look knows
	}
	now := stamp{}
	if err == nil {
		now = stamp{changed: info.ModTime(), size: info.Size()}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			now.inode = st.Ino
		}
		if was, known := f.stamps[path]; known && was == now && !again {
			return reading{}, false
		}
	}
	r := reading{place: path, again: again, err: err}
	if err == nil {
		r.text, r.err = readManifest(path, info)
	}
	f.stamps[path] = now
	return r, true
}

// understood is called when a file's contents are known.
func (f *folder) understood(path string) { delete(f.again, path) }

// doubted has a file read again at the next look, whether it has changed or not.
func (f *folder) doubted(path string) { delete(f.stamps, path) }

// dangling reports whether there is a link that leads nowhere.
func dangling(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func readManifest(path string, info os.FileInfo) ([]byte, error) {
	switch {
	case info.IsDir():
		return nil, errors.New("is a folder; manifests in folders below are not read")
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(file)
}

func readAtMost(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, manifest.MaxFileBytes+1))
	if err == nil && len(text) > manifest.MaxFileBytes {
		return nil, fmt.Errorf("is larger than %d MiB", manifest.MaxFileBytes>>20)
	}
	return text, err
}

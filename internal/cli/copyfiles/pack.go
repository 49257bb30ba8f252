// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Pack writes the file or tree at local as a tar stream whose names begin with name. Symbolic links are kept as links;
// what is neither file, folder nor link (sockets, devices) is left out and reported to skipped.
func Pack(w io.Writer, local, name string, skipped func(path, why string)) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(local, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(local, file)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() && !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			skipped(file, notCopied)
			return nil
		}
		return packOne(t, file, path.Join(name, filepath.ToSlash(rel)), info)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

// notCopied is why something is left out.
const notCopied = "not a file, folder or symbolic link"

// headerOf is the header of a file's entry.
func headerOf(file, name string, info fs.FileInfo) (*tar.Header, error) {
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if link, err = os.Readlink(file); err != nil {
			return nil, err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return nil, err
	}
	h.Name = name
	if info.IsDir() {
		h.Name += "/"
	}
	h.Uid, h.Gid, h.Uname, h.Gname = 0, 0, "", "" // local users mean nothing there
	return h, nil
}

func packOne(t *tar.Writer, file, name string, info fs.FileInfo) error {
	h, err := headerOf(file, name, info)
	if err != nil {
		return err
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.CopyN(t, f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: the file shrank while it was being read (%d of %d bytes): %w", file, n, info.Size(), err)
	}
	return nil
}

// Size is how many bytes the files of a tree have that Pack would write.
func Size(local string) (total int64, err error) {
	err = filepath.WalkDir(local, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		return nil
	})
	return total, err
}

// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"
)

// bounded reads what there is of an image, one part after the other, as long as it is not too much for who unpacks it.
// That holds for what is written if each entry of a layer was accepted first.
type bounded struct {
	from io.Reader
	dir  string // where they are unpacked

	most, spare  int64 // 0: no bound
	used, looked int64
}

// lookEvery is how much is used between two looks at the disk.
const lookEvery = 32 << 20

// What an entry takes beside the bytes that are read of it.
const (
	perFile = 4 << 10 // a file, or a folder, which is a block of the disk or more, and an inode
	perByte = 64      // a byte of its metadata, which is kept in memory until its layer is unpacked
)

// leastInodes of the disk's, in per cent, are not for images: with fewer, a node's kubelet sends pods away.
const leastInodes = 6

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if err := b.use(0); err != nil {
		return 0, err
	}
	n, err := b.from.Read(p)
	if over := b.use(int64(n)); over != nil {
		return 0, over
	}
	return n, err
}

// use counts what an image takes, and says when it is too much.
func (b *bounded) use(n int64) error {
	b.used += n
	if b.most > 0 && b.used > b.most {
		return fmt.Errorf("its files are more than the %d MiB that there are for an image here", b.most>>20)
	}
	if b.spare <= 0 || b.looked != 0 && b.used-b.looked < lookEvery {
		return nil
	}
	b.looked = max(b.used, 1)
	var fs unix.Statfs_t
	if err := unix.Statfs(b.dir, &fs); err != nil {
		return err
	}
	return room(b.dir, &fs, b.spare)
}

// room reports whether a disk has room for images. (Pure.)
func room(dir string, fs *unix.Statfs_t, spare int64) error {
	if free := int64(fs.Bavail) * fs.Bsize; free < spare {
		return fmt.Errorf("the disk of %s is nearly full: %d MiB are free, and %d MiB are not for images", dir,
			free>>20, spare>>20)
	}
	if fs.Files > 0 && fs.Ffree < fs.Files/100*leastInodes { // some have no number of them
		return fmt.Errorf("the disk of %s has nearly no inodes left: %d of %d are free, and %d %% are not for images",
			dir, fs.Ffree, fs.Files, leastInodes)
	}
	return nil
}

// accept implements archive.Filter: it counts an entry before it is unpacked. One with holes is refused, for they are
// written, and nothing of them is read.
func (b *bounded) accept(h *tar.Header) (bool, error) {
	if b.most <= 0 && b.spare <= 0 {
		return true, nil
	}
	metadata := len(h.Name) + len(h.Linkname)
	for k, v := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return false, fmt.Errorf("%s is a file with holes in it, which are not unpacked here", h.Name)
		}
		metadata += len(k) + len(v)
	}
	folders, err := missing(b.dir, filepath.Dir(h.Name))
	if err != nil {
		return false, err
	}
	return true, b.use(int64(1+folders)*perFile + int64(metadata)*perByte)
}

// missing is how many folders are made for a path below dir, whose links are followed within dir.
func missing(dir, path string) (n int, err error) {
	at, err := securejoin.SecureJoin(dir, path)
	if err != nil {
		return 0, err
	}
	for ; at != dir && at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		n++
	}
	return n, nil
}

// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// bounded reads the layers of an image, one after the other, as long as they are not too much for who unpacks them.
type bounded struct {
	from io.Reader
	dir  string // where they are unpacked

	most, spare  int64 // 0: no bound
	read, looked int64
}

// lookEvery is how much is read between two looks at the disk.
const lookEvery = 32 << 20

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.spare > 0 && (b.looked == 0 || b.read-b.looked >= lookEvery) {
		var fs unix.Statfs_t
		if err := unix.Statfs(b.dir, &fs); err != nil {
			return 0, err
		}
		if free := int64(fs.Bavail) * fs.Bsize; free < b.spare {
			return 0, fmt.Errorf("the disk of %s is nearly full: %d MiB are free, and %d MiB are not for images", b.dir,
				free>>20, b.spare>>20)
		}
		b.looked = max(b.read, 1)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	if b.most > 0 && b.read > b.most {
		return 0, fmt.Errorf("its files are more than the %d MiB that there are for an image here", b.most>>20)
	}
	return n, err
}

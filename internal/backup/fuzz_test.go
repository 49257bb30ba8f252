// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// FuzzSparse: whatever the entry of a file with holes says, its parts follow upon each other within the file, and a file that comes of it has
// the size that was said, holds what the parts held, and zeros elsewhere. (A backup's digests do not let a fuzzer get as far as this.)
func FuzzSparse(f *testing.F) {
	f.Add(int64(100), []byte("5 3\n10 2\n\nabcde"))
	f.Add(int64(0), []byte("\n"))
	f.Add(int64(10), []byte("5 3\n4 1\n\nabcd"))
	f.Add(int64(10), []byte("9223372036854775807 1\n\na"))
	f.Add(int64(10), []byte("0 9223372036854775807\n"))
	f.Add(int64(10), []byte("-1 5\n\nabcde"))
	f.Add(int64(10), []byte("0 5 \n 6 1\n\nabcdef more"))
	f.Fuzz(func(t *testing.T, size int64, entry []byte) {
		if size > 1<<20 || len(entry) > 1<<16 {
			return
		}
		file, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		h := &tar.Header{PAXRecords: map[string]string{sparseSize: strconv.FormatInt(size, 10)}}
		err = spread(h, bytes.NewReader(entry), file)
		if looked := spread(h, bytes.NewReader(entry), nil); (looked == nil) != (err == nil) {
			t.Fatalf("looked at: %v, unpacked: %v", looked, err)
		}
		if err != nil {
			return
		}
		in := bufio.NewReader(bytes.NewReader(entry))
		parts, err := listed(in, size)
		if err != nil {
			t.Fatal(err)
		}
		want, end := make([]byte, size), int64(0)
		for _, p := range parts {
			if p.at < end || p.size <= 0 || p.at+p.size > size {
				t.Fatalf("parts %v of %d", parts, size)
			}
			if end = p.at + p.size; end > size {
				t.Fatalf("parts %v of %d", parts, size)
			}
			if _, err := io.ReadFull(in, want[p.at:end]); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q, wanted %q: %v", got, want, err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"testing"
)

// FuzzUnpack unpacks archives, which anybody may have made: outside of the root nothing changes (ATTACK A16).
func FuzzUnpack(f *testing.F) {
	for _, list := range [][]tar.Header{
		{file("a"), folder("b"), link("b/c", "../../outside"), file("b/c/x")},
		{link("up", "/"), file("up/outside/secret")},
		{hard("h", "../../outside/secret"), hard("g", "etc/passwd"), file("g")},
		{file("../x"), file("/y"), folder("."), link("data", "/etc")},
		{{Typeflag: tar.TypeFifo, Name: "p", Mode: 0o644}, {Typeflag: tar.TypeXGlobalHeader, Name: "g"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range list {
			h.Uid, h.Gid = os.Getuid(), os.Getgid()
			_ = w.WriteHeader(&h) // what there is of it is a seed all the same
		}
		_ = w.Close()
		f.Add(b.Bytes(), "data")
		f.Add(b.Bytes(), "data/up")
	}
	f.Fuzz(func(t *testing.T, data []byte, into string) {
		dir, root := world(t)
		before := picture(t, dir+"/outside")
		u, err := NewUnpacker(root, into)
		if err == nil {
			archive := tar.NewReader(io.LimitReader(bytes.NewReader(data), 1<<20))
			for h, err := archive.Next(); err == nil; h, err = archive.Next() {
				if h.Size > 1<<20 { // holes: the disk's room is not what is tested
					continue
				}
				h.Mode |= 0o700 // or it could not be removed
				_ = u.Put(h, archive)
			}
			_ = u.Finish()
			u.Close()
		}
		if after := picture(t, dir+"/outside"); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("%v, %v", entries, err)
		}
	})
}

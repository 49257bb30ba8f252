// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Read implements fuse.RawFileSystem, as the rest of this file.
func (f *filesystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	defer f.begin("read")()
	n := f.s.cache[in.NodeId]
	if concerns(f.trouble.ReadFails, n.name) {
		return nil, fuse.EIO
	}
	return fuse.ReadResultData(n.read(buf[:min(len(buf), int(in.Size))], int64(in.Offset))), fuse.OK
}

func (f *filesystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	defer f.change("write")()
	if f.trouble.dark {
		return 0, fuse.EIO
	}
	n, at := f.s.cache[in.NodeId], int64(in.Offset)
	if f.trouble.Full { // what fits is written
		for i := at / pageSize; i*pageSize < at+int64(len(data)); i++ {
			if !n.has(i) && !f.trouble.take(1) {
				data = data[:max(0, i*pageSize-at)]
			}
		}
		if len(data) == 0 {
			return 0, fuse.Status(syscall.ENOSPC)
		}
	}
	n.write(data, at)
	n.mtime = time.Now().UnixNano()
	return uint32(len(data)), fuse.OK
}

// Writev has no advantage here.
func (f *filesystem) Writev(<-chan struct{}, *fuse.WriteIn, [][]byte) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

func (f *filesystem) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	defer f.change("fallocate")()
	if in.Mode&^uint32(unix.FALLOC_FL_KEEP_SIZE) != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	n, end := f.s.cache[in.NodeId], int64(in.Offset+in.Length)
	if more := (end - n.held) / pageSize; more > 0 && !f.trouble.take(more) {
		return fuse.Status(syscall.ENOSPC)
	}
	f.s.do(allocate(in.NodeId, end, in.Mode&unix.FALLOC_FL_KEEP_SIZE != 0))
	return fuse.OK
}

func (f *filesystem) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	f.mu.Lock()
	wait := f.trouble.SyncTakes
	f.mu.Unlock()
	time.Sleep(wait)
	defer f.begin("fsync")()
	if f.trouble.dark || f.trouble.last() {
		f.darken()
		return fuse.EIO
	}
	n := f.s.cache[in.NodeId]
	if f.trouble.sync(n.name) {
		f.s.syncFails(in.NodeId, f.trouble.rng)
		return fuse.EIO
	}
	f.s.sync(in.NodeId)
	return fuse.OK
}

func (f *filesystem) FsyncDir(_ <-chan struct{}, _ *fuse.FsyncIn) fuse.Status {
	defer f.begin("fsyncdir")()
	if f.trouble.dark || f.trouble.last() {
		f.darken()
		return fuse.EIO
	}
	f.s.commit()
	return fuse.OK
}

func (f *filesystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	defer f.begin("readdir")()
	n := f.s.cache[in.NodeId]
	names := append([]string{".", ".."}, slices.Sorted(maps.Keys(n.entries))...)
	for i := int(in.Offset); i < len(names); i++ {
		e := fuse.DirEntry{Name: names[i], Mode: syscall.S_IFDIR, Ino: in.NodeId, Off: uint64(i + 1)}
		if ino, there := n.entries[names[i]]; there {
			e.Ino, e.Mode = ino, f.s.cache[ino].mode
		}
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

func (f *filesystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	defer f.begin("statfs")()
	used := uint64(0)
	for _, n := range f.s.cache {
		used += uint64(n.room())
	}
	out.Bsize, out.Frsize, out.NameLen = pageSize, pageSize, 255
	out.Blocks = capacity / pageSize
	out.Bfree = out.Blocks - used
	if f.trouble.Full {
		out.Bfree = uint64(f.trouble.freed)
	}
	out.Bavail = out.Bfree
	out.Files, out.Ffree = 1<<20, 1<<20
	return fuse.OK
}

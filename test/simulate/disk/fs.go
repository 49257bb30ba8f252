// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	capacity = 16 << 30 // bytes that the disk says it has
	// seconds for which the kernel may remember what it was told: nobody else changes anything
	forKeeps = 365 * 86400
	noHandle = fuse.Status(syscall.ENOSYS) // the kernel does not ask again
)

// filesystem answers the kernel for one mount.
type filesystem struct {
	fuse.RawFileSystem

	mu      sync.Mutex
	s       *state
	next    *state // what the next mount shows; nil: it has not been cut
	trouble trouble
	counts  map[string]int
}

func newFilesystem(s *state) *filesystem {
	return &filesystem{RawFileSystem: fuse.NewDefaultRawFileSystem(), s: s, counts: map[string]int{}}
}

func (f *filesystem) begin(op string) func() {
	f.mu.Lock()
	f.counts[op]++
	return f.mu.Unlock
}

// change begins a change, with what is to be called at its end: the power may end by it.
func (f *filesystem) change(op string) func() {
	unlock := f.begin(op)
	return func() {
		if f.trouble.last() {
			f.darken()
		}
		unlock()
	}
}

// darken ends the power, once.
func (f *filesystem) darken() {
	if !f.trouble.dark {
		f.next, f.trouble.dark = f.s.powerless(f.trouble.Loss, f.trouble.rng), true
	}
}

func (f *filesystem) attr(ino uint64, out *fuse.Attr) fuse.Status {
	n := f.s.cache[ino]
	if n == nil {
		return fuse.ENOENT
	}
	out.Ino, out.Size, out.Mode, out.Nlink, out.Uid, out.Gid = ino, uint64(n.size), n.mode, n.links, n.uid, n.gid
	out.Blksize, out.Blocks = pageSize, uint64(max(int64(len(n.pages))*pageSize, n.held))/sectorSize
	out.Mtime, out.Mtimensec = uint64(n.mtime/1e9), uint32(n.mtime%1e9)
	out.Ctime, out.Ctimensec, out.Atime = out.Mtime, out.Mtimensec, out.Mtime
	return fuse.OK
}

func (f *filesystem) entry(ino uint64, out *fuse.EntryOut) fuse.Status {
	out.NodeId, out.Generation, out.EntryValid, out.AttrValid = ino, 1, forKeeps, forKeeps
	return f.attr(ino, &out.Attr)
}

// Lookup implements fuse.RawFileSystem, as the rest of this file.
func (f *filesystem) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	defer f.begin("lookup")()
	ino, there := f.s.cache[h.NodeId].entries[name]
	if !there {
		out.EntryValid = forKeeps // that there is none
		return fuse.OK
	}
	return f.entry(ino, out)
}

func (f *filesystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	defer f.begin("getattr")()
	out.AttrValid = forKeeps
	return f.attr(in.NodeId, &out.Attr)
}

func (f *filesystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	defer f.change("setattr")()
	n := f.s.cache[in.NodeId]
	if n == nil {
		return fuse.ENOENT
	}
	if size, ok := in.GetSize(); ok && int64(size) != n.size {
		shrinks, before := int64(size) < n.size, n.room()
		f.s.do(truncate(in.NodeId, int64(size)))
		if shrinks {
			n.since = f.s.number()
			f.trouble.freed += before - n.room()
		}
	}
	mode, uid, gid := n.mode, n.uid, n.gid
	if m, ok := in.GetMode(); ok {
		mode = n.mode&syscall.S_IFMT | m
	}
	if id, ok := in.GetUID(); ok {
		uid = id
	}
	if id, ok := in.GetGID(); ok {
		gid = id
	}
	if mode != n.mode || uid != n.uid || gid != n.gid {
		f.s.do(own(in.NodeId, mode, uid, gid))
	}
	if t, ok := in.GetMTime(); ok {
		n.mtime = t.UnixNano()
	}
	out.AttrValid = forKeeps
	return f.attr(in.NodeId, &out.Attr)
}

// make gives a new node a name.
func (f *filesystem) make(parent uint64, name string, n node, out *fuse.EntryOut) fuse.Status {
	if n.mode&syscall.S_IFMT == syscall.S_IFDIR { // takes a block; nodes are laid out when a file system is made
		if !f.trouble.take(1) {
			return fuse.Status(syscall.ENOSPC)
		}
	}
	if _, there := f.s.cache[parent].entries[name]; there {
		return fuse.Status(syscall.EEXIST)
	}
	ino := f.s.next
	f.s.next++
	n.mtime = time.Now().UnixNano()
	f.s.do(makeNode(parent, name, ino, n))
	return f.entry(ino, out)
}

func (f *filesystem) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	defer f.change("mknod")()
	return f.make(in.NodeId, name, node{mode: in.Mode, uid: in.Uid, gid: in.Gid}, out)
}

func (f *filesystem) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	defer f.change("mkdir")()
	return f.make(in.NodeId, name, node{mode: syscall.S_IFDIR | in.Mode, uid: in.Uid, gid: in.Gid}, out)
}

func (f *filesystem) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	defer f.change("symlink")()
	return f.make(h.NodeId, name, node{mode: syscall.S_IFLNK | 0o777, uid: h.Uid, gid: h.Gid, target: target,
		size: int64(len(target))}, out)
}

func (f *filesystem) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	defer f.change("create")()
	return f.make(in.NodeId, name, node{mode: syscall.S_IFREG | in.Mode&0o7777, uid: in.Uid, gid: in.Gid},
		&out.EntryOut)
}

func (f *filesystem) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	defer f.begin("readlink")()
	return []byte(f.s.cache[h.NodeId].target), fuse.OK
}

func (f *filesystem) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	defer f.change("link")()
	f.s.do(link(in.NodeId, name, in.Oldnodeid))
	return f.entry(in.Oldnodeid, out)
}

func (f *filesystem) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	defer f.change("unlink")()
	ino, there := f.s.cache[h.NodeId].entries[name]
	if !there {
		return fuse.ENOENT
	}
	f.s.do(unlink(h.NodeId, name))
	if n := f.s.cache[ino]; n.links == 0 {
		f.trouble.freed += n.room()
	}
	return fuse.OK
}

func (f *filesystem) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	defer f.change("rmdir")()
	ino, there := f.s.cache[h.NodeId].entries[name]
	switch {
	case !there:
		return fuse.ENOENT
	case len(f.s.cache[ino].entries) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	f.s.do(unlink(h.NodeId, name))
	return fuse.OK
}

func (f *filesystem) Rename(_ <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	defer f.change("rename")()
	ino, there := f.s.cache[in.NodeId].entries[name]
	other, taken := f.s.cache[in.Newdir].entries[newName]
	switch {
	case !there:
		return fuse.ENOENT
	case in.Flags&unix.RENAME_NOREPLACE != 0 && taken:
		return fuse.Status(syscall.EEXIST)
	case in.Flags&^unix.RENAME_NOREPLACE != 0:
		return fuse.Status(syscall.EINVAL)
	case taken && other != ino && len(f.s.cache[other].entries) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	f.s.do(rename(in.NodeId, name, in.Newdir, newName))
	return fuse.OK
}

// Open and Flush have nothing to do.
func (f *filesystem) Open(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return noHandle }

func (f *filesystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return noHandle }

func (f *filesystem) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status {
	return fuse.OK
}

func (f *filesystem) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return noHandle }

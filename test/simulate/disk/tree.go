// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"maps"
	"syscall"
)

const (
	sectorSize = 512  // bytes that a disk writes as a whole
	pageSize   = 4096 // bytes that a file system allocates
	allSectors = 1<<(pageSize/sectorSize) - 1
	rootNode   = 1
)

type page [pageSize]byte

// node is a file, folder, link or anything else that has a name.
type node struct {
	mode     uint32 // type and permissions
	uid, gid uint32
	links    uint32
	size     int64
	mtime    int64             // nanoseconds
	entries  map[string]uint64 // of a folder
	target   string            // of a symbolic link
	pages    map[int64]*page   // of a file; those missing are zeros
	held     int64             // bytes from the beginning that have room on the disk, written or not

	// What follows is of no meaning on the platter.
	name  string          // the last it was given
	dirty map[int64]uint8 // sectors of pages that are newer than the platter's
	since uint64          // number of the change before which nothing that was written can survive
}

// tree is a file system at one moment. Its nodes are named by numbers, so that a change of one tree can be made to
// another.
type tree map[uint64]*node

func newTree() tree {
	return tree{rootNode: {mode: syscall.S_IFDIR | 0o755, links: 2, entries: map[string]uint64{}}}
}

// copy shares nothing with t, and leaves out what no name leads to.
func (t tree) copy() tree {
	out := tree{}
	var take func(ino uint64)
	take = func(ino uint64) {
		n := t[ino]
		if n == nil || out[ino] != nil {
			return
		}
		c := *n
		c.entries, c.dirty, c.pages = maps.Clone(n.entries), maps.Clone(n.dirty), make(map[int64]*page, len(n.pages))
		for i, p := range n.pages {
			c.pages[i] = new(*p)
		}
		out[ino] = &c
		for _, child := range n.entries {
			take(child)
		}
	}
	take(rootNode)
	return out
}

// The changes of names and sizes. Each is made to the tree that programs see at once, and to the platter's when it is
// committed.

type change func(tree)

func makeNode(parent uint64, name string, ino uint64, made node) change {
	return func(t tree) {
		n := made
		n.links, n.name = 1, name
		switch n.mode & syscall.S_IFMT {
		case syscall.S_IFDIR:
			n.entries, n.links = map[string]uint64{}, 2
			t[parent].links++
		case syscall.S_IFREG:
			n.pages = map[int64]*page{}
		}
		t[ino] = &n
		t[parent].entries[name] = ino
	}
}

func link(parent uint64, name string, ino uint64) change {
	return func(t tree) {
		t[parent].entries[name] = ino
		t[ino].links++
	}
}

func unlink(parent uint64, name string) change {
	return func(t tree) { t.drop(parent, name) }
}

func (t tree) drop(parent uint64, name string) {
	n := t[t[parent].entries[name]]
	delete(t[parent].entries, name)
	n.links--
	if n.mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.links = 0
		t[parent].links--
	}
}

func rename(from uint64, name string, to uint64, newName string) change {
	return func(t tree) {
		ino := t[from].entries[name]
		if old, there := t[to].entries[newName]; there {
			if old == ino {
				return
			}
			t.drop(to, newName)
		}
		delete(t[from].entries, name)
		t[to].entries[newName] = ino
		t[ino].name = newName
		if t[ino].mode&syscall.S_IFMT == syscall.S_IFDIR && from != to {
			t[from].links--
			t[to].links++
		}
	}
}

func truncate(ino uint64, size int64) change {
	return func(t tree) {
		n := t[ino]
		if size < n.size {
			n.cut(size)
		}
		n.size, n.held = size, min(n.held, size)
	}
}

// cut drops what lies beyond size, so that zeros are there if the file grows again.
func (n *node) cut(size int64) {
	last := size / pageSize
	for i, p := range n.pages {
		switch {
		case i > last || i == last && size%pageSize == 0:
			delete(n.pages, i)
			delete(n.dirty, i)
		case i == last:
			clear(p[size%pageSize:])
		}
	}
}

// allocate takes room from the beginning to end.
func allocate(ino uint64, end int64, keepSize bool) change {
	return func(t tree) {
		n := t[ino]
		n.held = max(n.held, end)
		if !keepSize {
			n.size = max(n.size, end)
		}
	}
}

func own(ino uint64, mode, uid, gid uint32) change {
	return func(t tree) { t[ino].mode, t[ino].uid, t[ino].gid = mode, uid, gid }
}

// has tells whether the page has room on the disk already.
func (n *node) has(i int64) bool { return n.pages[i] != nil || (i+1)*pageSize <= n.held }

// room is how many pages it takes.
func (n *node) room() int64 {
	count := max(n.held, 0) / pageSize
	for i := range n.pages {
		if i >= n.held/pageSize {
			count++
		}
	}
	return count
}

// read fills as much of buf as the file has from a place on.
func (n *node) read(buf []byte, at int64) []byte {
	if at >= n.size {
		return nil
	}
	buf = buf[:min(int64(len(buf)), n.size-at)]
	for rest := buf; len(rest) > 0; {
		from := at % pageSize
		k := min(int64(len(rest)), pageSize-from)
		if p := n.pages[at/pageSize]; p != nil {
			copy(rest[:k], p[from:])
		} else {
			clear(rest[:k])
		}
		rest, at = rest[k:], at+k
	}
	return buf
}

// write puts data into the file, and remembers which sectors the platter does not have.
func (n *node) write(data []byte, at int64) {
	if n.dirty == nil {
		n.dirty = map[int64]uint8{}
	}
	for len(data) > 0 {
		i, from := at/pageSize, at%pageSize
		k := min(int64(len(data)), pageSize-from)
		p := n.pages[i]
		if p == nil {
			p = new(page)
			n.pages[i] = p
		}
		copy(p[from:], data[:k])
		for s := from / sectorSize; s <= (from+k-1)/sectorSize; s++ {
			n.dirty[i] |= 1 << s
		}
		data, at = data[k:], at+k
	}
	n.size = max(n.size, at)
}

// take copies the sectors of a page of another node.
func (n *node) take(from *node, i int64, sectors uint8) {
	src := from.pages[i]
	if src == nil || sectors == 0 {
		return
	}
	dst := n.pages[i]
	if dst == nil {
		dst = new(page)
		n.pages[i] = dst
	}
	if sectors == allSectors {
		*dst = *src
		return
	}
	for s := range pageSize / sectorSize {
		if sectors&(1<<s) != 0 {
			copy(dst[s*sectorSize:(s+1)*sectorSize], src[s*sectorSize:])
		}
	}
}

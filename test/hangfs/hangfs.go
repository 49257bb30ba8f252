// SPDX-License-Identifier: Apache-2.0

package hangfs

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Of the kernel's FUSE protocol (https://docs.kernel.org/filesystems/fuse/fuse.html, include/uapi/linux/fuse.h).
const (
	opLookup, opForget, opGetattr, opOpen, opStatfs, opInit, opOpendir, opForgetMany = 1, 2, 3, 14, 17, 26, 27, 42

	rootID, dirID, fileID = 1, 2, 3
)

// FS is a mounted file system.
type FS struct {
	dir  string
	dev  *os.File
	hung atomic.Bool
}

// Mount mounts a file system on a folder.
func Mount(dir string) (*FS, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	if err := unix.Mount("hangfs", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		fd)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	f := &FS{dir: dir, dev: os.NewFile(uintptr(fd), "/dev/fuse")}
	go f.serve()
	return f, nil
}

// Hang makes it answer nothing any more.
func (f *FS) Hang() { f.hung.Store(true) }

// End ends what waits for it, and unmounts it.
func (f *FS) End() {
	// which ends the wait, where it is mounted still
	_ = unix.Unmount(f.dir, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	_ = unix.Unmount(f.dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	_ = f.dev.Close()
}

func (f *FS) serve() {
	in := make([]byte, 1<<17)
	for {
		n, err := f.dev.Read(in)
		if err != nil || n < 40 {
			return
		}
		op, id, node := binary.NativeEndian.Uint32(in[4:]), binary.NativeEndian.Uint64(in[8:]),
			binary.NativeEndian.Uint64(in[16:])
		if op == opForget || op == opForgetMany || f.hung.Load() {
			continue
		}
		body, errno := answer(op, node, in[40:n])
		out := make([]byte, 16, 16+len(body))
		binary.NativeEndian.PutUint32(out, uint32(16+len(body)))
		binary.NativeEndian.PutUint32(out[4:], uint32(-int32(errno)))
		binary.NativeEndian.PutUint64(out[8:], id)
		_, _ = f.dev.Write(append(out, body...))
	}
}

// answer is what there is: a folder "dir" and a file "file".
func answer(op uint32, node uint64, in []byte) ([]byte, syscall.Errno) {
	switch op {
	case opInit:
		out := make([]byte, 64)
		binary.NativeEndian.PutUint32(out, 7)
		binary.NativeEndian.PutUint32(out[4:], 31)
		binary.NativeEndian.PutUint32(out[20:], 1<<16) // the largest write
		return out, 0
	case opLookup:
		id, known := map[string]uint64{"dir\x00": dirID, "file\x00": fileID}[string(in)]
		if !known || node != rootID {
			return nil, syscall.ENOENT
		}
		out := make([]byte, 40, 128)
		binary.NativeEndian.PutUint64(out, id)
		return append(out, attributes(id)...), 0
	case opGetattr:
		return append(make([]byte, 16), attributes(node)...), 0
	case opOpen, opOpendir:
		return make([]byte, 16), 0
	case opStatfs:
		return make([]byte, 80), 0
	}
	return nil, syscall.ENOSYS
}

func attributes(id uint64) []byte {
	out := make([]byte, 88)
	mode := uint32(unix.S_IFDIR | 0o755)
	if id == fileID {
		mode = unix.S_IFREG | 0o644
		binary.NativeEndian.PutUint64(out[8:], 4096)
	}
	binary.NativeEndian.PutUint64(out, id)
	binary.NativeEndian.PutUint32(out[60:], mode)
	binary.NativeEndian.PutUint32(out[64:], 2)
	return out
}

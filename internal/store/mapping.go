// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Etcd reads its database through a mapping. A page that the disk cannot read is a signal then, not an error, and
// without what is in this file it ends the process with a trace, in whichever goroutine it comes. So a database of an
// ordinary size is kept in memory: none of its pages is ever read again. Of a larger one, a fault in a goroutine that
// answers a request, or is ours, is reported as what it is.

// mostLocked is the size of database that is kept in memory, on a machine that has mostLockedShare times as much.
const (
	mostLocked      = 256 << 20
	mostLockedShare = 16
)

// lockable is how large a database may be that is kept in memory.
func lockable() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return min(mostLocked, int64(info.Totalram)*int64(info.Unit)/mostLockedShare)
}

// mapping is a part of this process's memory that shows a file from its beginning.
type mapping struct{ from, to uintptr }

// mappingOf finds the mapping of a file. Zero: there is none, or it is not known.
func mappingOf(path string) mapping {
	info, err := os.Stat(path)
	if err != nil {
		return mapping{}
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return mapping{}
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return mapping{}
	}
	if path, err = filepath.Abs(path); err != nil {
		return mapping{}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return mapping{}
	}
	return findMapping(maps, s.Ino, path)
}

// findMapping looks for a file in what the kernel says of a process's mappings, one a line: FROM-TO MODE OFFSET DEVICE
// INODE PATH. It is one with an inode of that number: of that path, or of any other if none is, as a file may be
// reached by several. Devices are not compared: file systems of several have others here than for stat. Zero: there is
// none, or more than one. (Pure.)
func findMapping(maps []byte, inode uint64, path string) mapping {
	var parts, named []part
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		p, ok := parsePart(lines.Text())
		if !ok || p.inode != inode {
			continue
		}
		parts = append(parts, p)
		if p.path == path {
			named = append(named, p)
		}
	}
	if len(named) > 0 {
		parts = named
	}
	return join(parts)
}

// part is one line of what the kernel says of a process's mappings.
type part struct {
	mapping
	offset, inode uint64
	path          string
}

// parsePart reads a line of the mappings; a line that is not of a file has inode 0. (Pure.)
func parsePart(line string) (p part, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return p, false
	}
	if _, err := fmt.Sscanf(fields[0]+" "+fields[2]+" "+fields[4], "%x-%x %x %d", &p.from, &p.to, &p.offset,
		&p.inode); err != nil {
		return p, false
	}
	if len(fields) > 5 {
		p.path = line[strings.Index(line, fields[5]):] // which may have spaces in it
	}
	return p, true
}

// join has parts that lie side by side be one. Zero: they do not, or do not begin with the file's beginning. (Pure.)
func join(parts []part) (all mapping) {
	for i, p := range parts {
		switch {
		case i == 0 && p.offset == 0:
			all = p.mapping
		case i > 0 && p.from == all.to && uint64(all.to-all.from) == p.offset: // locked in part
			all.to = p.to
		default:
			return mapping{}
		}
	}
	return all
}

// keepInMemory has all of a database's pages read, once, and kept, unless it is too large. Where that cannot be, they
// are read as needed.
func (k *keeper) keepInMemory(f facts) {
	if f.size == k.locked {
		return
	}
	m := mappingOf(k.file())
	if m == (mapping{}) || uint64(f.size) > uint64(m.to-m.from) {
		return
	}
	var failed syscall.Errno
	if f.size <= k.lockable {
		_, _, failed = unix.Syscall(unix.SYS_MLOCK, m.from, uintptr(f.size), 0)
	} else if k.locked > 0 {
		_, _, failed = unix.Syscall(unix.SYS_MUNLOCK, m.from, m.to-m.from, 0)
	}
	if failed != 0 {
		k.log.Debug("the store's file cannot be kept in memory", "file", k.file(), "err", failed)
		return
	}
	k.locked = f.size
}

// reading calls do. A page of the database that cannot be read meanwhile, in this goroutine, is the verdict over etcd.
func (e *Etcd) reading(do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if err = e.unreadable(r); err == nil {
				panic(r)
			}
			e.verdict.give(fmt.Errorf("etcd gave up: %w", err))
		}
	}()
	do()
	return nil
}

// unreadable says in words what a panic is, if it is a page of the database that cannot be read. Locks are left as they
// are: nobody may go on.
func (e *Etcd) unreadable(panicked any) error {
	fault, ok := panicked.(interface{ Addr() uintptr })
	if !ok {
		return nil
	}
	at, m := fault.Addr(), mappingOf(e.database)
	if at < m.from || at >= m.to {
		return nil
	}
	place := int64(at - m.from)
	if info, err := os.Stat(e.database); err == nil && info.Size() <= place {
		return fmt.Errorf("%s was cut to %d bytes while it was in use", e.database, info.Size())
	}
	return &os.PathError{Op: fmt.Sprintf("read at %d of", place), Path: e.database, Err: syscall.EIO}
}

// watchReading has gRPC answer all requests in reading.
func (e *Etcd) watchReading() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(e.answer), grpc.ChainStreamInterceptor(e.serve)}
}

func (e *Etcd) answer(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
	next grpc.UnaryHandler) (answer any, err error) {
	if _, reads := request.(*pb.RangeRequest); !reads {
		defer e.pulse.stir()
	}
	if why := e.reading(func() { answer, err = next(ctx, request) }); why != nil {
		return nil, grpcstatus.Error(codes.Internal, why.Error())
	}
	return answer, err
}

func (e *Etcd) serve(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
	next grpc.StreamHandler) (err error) {
	if why := e.reading(func() { err = next(server, stirring{stream, e.pulse}) }); why != nil {
		return grpcstatus.Error(codes.Internal, why.Error())
	}
	return err
}

// stirring is a stream whose messages stir the pulse: each may be a new watch.
type stirring struct {
	grpc.ServerStream
	pulse *pulse
}

// RecvMsg implements grpc.ServerStream. The beats that it begins come later than what the message does.
func (s stirring) RecvMsg(m any) error {
	defer s.pulse.stir()
	return s.ServerStream.RecvMsg(m)
}

// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shapes are the arguments of calls, a letter each: p path, d number, x address or bits, o mode, F flags of open, D
// folder, s text of the length that follows, r text that was read, a socket address, v list of texts. Other calls show
// numbers.
func shapes() map[string]string {
	return map[string]string{
		"open": "pFo", "openat": "DpFo", "openat2": "Dpxd", "creat": "po", "close": "d", "read": "drd", "write": "dsd",
		"pread64": "drdd", "pwrite64": "dsdd", "stat": "px", "lstat": "px", "fstat": "dx", "newfstatat": "Dpxx",
		"fstatat": "Dpxx", "statx": "Dpxxx", "access": "px", "faccessat": "Dpx", "faccessat2": "Dpxx", "execve": "pvx",
		"execveat": "Dpvxx", "readlink": "prd", "readlinkat": "Dprd", "unlink": "p", "unlinkat": "Dpx", "mkdir": "po",
		"mkdirat": "Dpo", "rmdir": "p", "rename": "pp", "renameat": "DpDp", "renameat2": "DpDpx", "link": "pp",
		"linkat": "DpDpx", "symlink": "pp", "symlinkat": "pDp", "chdir": "p", "chroot": "p", "chmod": "po",
		"fchmod": "do", "fchmodat": "Dpo", "chown": "pdd", "fchown": "ddd", "lchown": "pdd", "fchownat": "Dpddx",
		"truncate": "pd", "ftruncate": "dd", "utimensat": "Dpxx", "mknod": "pod", "mknodat": "Dpod", "mount": "pppxx",
		"umount2": "px", "statfs": "px", "lseek": "ddd", "getdents64": "dxd", "dup": "d", "dup2": "dd", "dup3": "ddx",
		"fcntl": "ddx", "ioctl": "dxx", "fsync": "d", "flock": "dx", "socket": "ddd", "connect": "dad", "bind": "dad",
		"listen": "dd", "accept": "dxx", "accept4": "dxxx", "sendto": "dsdxad", "recvfrom": "drdxxx", "sendmsg": "dxx",
		"recvmsg": "dxx", "shutdown": "dd", "getsockname": "dxx", "getpeername": "dxx", "setsockopt": "dddxd",
		"getsockopt": "dddxx", "socketpair": "dddx", "pipe": "x", "pipe2": "xx", "poll": "xdd", "ppoll": "xdxx",
		"epoll_wait": "dxdd", "epoll_pwait": "dxddxd", "epoll_ctl": "dddx", "epoll_create1": "x", "eventfd2": "dx",
		"exit": "d", "exit_group": "d", "wait4": "dxxx", "waitid": "ddxxx", "kill": "dd", "tkill": "dd",
		"tgkill": "ddd", "getpid": "", "gettid": "", "getppid": "", "getuid": "", "getgid": "", "geteuid": "",
		"getegid": "", "sched_yield": "", "fork": "", "vfork": "", "mmap": "xdxxdx", "munmap": "xd", "mprotect": "xdx",
		"brk": "x", "madvise": "xdd", "futex": "xxdxxx", "nanosleep": "xx", "clock_nanosleep": "dxxx", "clone": "xxxxx",
		"clone3": "xd", "setuid": "d", "setgid": "d", "getcwd": "rd", "umask": "o", "rt_sigaction": "dxxd",
		"rt_sigprocmask": "dxxd", "rt_sigreturn": "", "sigaltstack": "xx", "getrandom": "xdx", "uname": "x",
		"prctl": "dxxxx", "prlimit64": "ddxx", "inotify_add_watch": "dpx", "getxattr": "ppxd", "setxattr": "ppxdx",
		"setns": "dx", "unshare": "x", "pivot_root": "pp", "memfd_create": "px", "set_tid_address": "x",
		"arch_prctl": "xx",
	}
}

// arguments words what a call was given; result is how many bytes a reading call got.
func (t *tracer) arguments(pid int, name string, args [6]uint64, result int64) string {
	shape, ok := shapes()[name]
	if !ok {
		shape = "xxxxxx"
	}
	var out []string
	for i, kind := range shape {
		v := args[i]
		switch kind {
		case 'd':
			n := int64(v)
			if v>>32 == 0 { // an int, whose upper half is not set
				n = int64(int32(v))
			}
			out = append(out, strconv.FormatInt(n, 10))
		case 'o':
			out = append(out, fmt.Sprintf("%#o", v&0o7777))
		case 'F':
			out = append(out, openFlags(v))
		case 'D':
			out = append(out, map[bool]string{true: "AT_FDCWD",
				false: strconv.Itoa(int(int32(v)))}[int32(v) == unix.AT_FDCWD])
		case 'p':
			out = append(out, t.path(pid, v))
		case 's':
			out = append(out, t.text(pid, v, int64(args[i+1])))
		case 'r':
			out = append(out, map[bool]string{true: t.text(pid, v, result), false: fmt.Sprintf("%#x", v)}[result >= 0])
		case 'a':
			if b := memory(pid, v, int(min(args[i+1], 128))); len(b) >= 2 {
				out = append(out, address(b))
			} else {
				out = append(out, pointer(v))
			}
		case 'v':
			out = append(out, t.list(pid, v))
		default:
			out = append(out, fmt.Sprintf("%#x", v))
		}
	}
	return strings.Join(out, ", ")
}

// memory reads up to n bytes of a process; what cannot be read is missing.
func memory(pid int, addr uint64, n int) []byte {
	if addr == 0 || n <= 0 {
		return nil
	}
	buf := make([]byte, n)
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(n)
	got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: n}}, 0)
	if err != nil || got < 0 {
		return nil
	}
	return buf[:got]
}

// pointer is an address at which there is nothing to be read.
func pointer(addr uint64) string {
	if addr == 0 {
		return "NULL"
	}
	return fmt.Sprintf("%#x", addr)
}

// path reads a text that ends with a zero byte; page by page, as the next page may not be there.
func (t *tracer) path(pid int, addr uint64) string {
	var text []byte
	for at := addr; len(text) < unix.PathMax; {
		part := memory(pid, at, int(4096-at%4096))
		if len(part) == 0 {
			return pointer(addr)
		}
		for i, ch := range part {
			if ch == 0 {
				return strconv.Quote(string(append(text, part[:i]...)))
			}
		}
		text = append(text, part...)
		at += uint64(len(part))
	}
	return strconv.Quote(string(text)) + "..."
}

func (t *tracer) text(pid int, addr uint64, n int64) string {
	b := memory(pid, addr, int(min(n, int64(t.size))))
	if b == nil && n > 0 {
		return fmt.Sprintf("%#x", addr)
	}
	more := ""
	if n > int64(len(b)) {
		more = "..."
	}
	return strconv.Quote(string(b)) + more
}

// list reads the texts of an argument list.
func (t *tracer) list(pid int, addr uint64) string {
	var out []string
	for i := range uint64(20) {
		p := memory(pid, addr+8*i, 8)
		if len(p) < 8 && i == 0 {
			return pointer(addr)
		}
		if len(p) < 8 {
			break // it has no end that can be read
		}
		if binary.NativeEndian.Uint64(p) == 0 {
			return "[" + strings.Join(out, ", ") + "]"
		}
		out = append(out, t.path(pid, binary.NativeEndian.Uint64(p)))
	}
	return "[" + strings.Join(out, ", ") + ", ...]"
}

func openFlags(v uint64) string {
	out := []string{[]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"}[v&3]}
	v &^= 3
	for _, f := range []struct {
		bit  uint64
		name string
	}{{unix.O_CREAT, "O_CREAT"}, {unix.O_EXCL, "O_EXCL"}, {unix.O_TRUNC, "O_TRUNC"}, {unix.O_APPEND, "O_APPEND"},
		{unix.O_NONBLOCK, "O_NONBLOCK"},
		{unix.O_DIRECTORY, "O_DIRECTORY"}, {unix.O_NOFOLLOW, "O_NOFOLLOW"}, {unix.O_CLOEXEC, "O_CLOEXEC"},
		{unix.O_PATH, "O_PATH"}, {unix.O_SYNC, "O_SYNC"}} {
		if v&f.bit == f.bit {
			out = append(out, f.name)
			v &^= f.bit
		}
	}
	if v != 0 {
		out = append(out, fmt.Sprintf("%#x", v))
	}
	return strings.Join(out, "|")
}

// address words a socket address, of two bytes at least.
func address(b []byte) string {
	port := func() uint16 { return binary.BigEndian.Uint16(b[2:]) }
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_UNIX:
		name := string(b[2:])
		if !strings.HasPrefix(name, "\x00") { // a path, which ends as paths do; another name has its whole length
			name, _, _ = strings.Cut(name, "\x00")
		}
		return strconv.Quote(name)
	case family == unix.AF_INET && len(b) >= 8:
		return fmt.Sprintf("%s:%d", netip.AddrFrom4([4]byte(b[4:8])), port())
	case family == unix.AF_INET6 && len(b) >= 24:
		return fmt.Sprintf("[%s]:%d", netip.AddrFrom16([16]byte(b[8:24])), port())
	default:
		return fmt.Sprintf("{family %d}", family)
	}
}

// result words what a call came to.
func result(name string, v int64) string {
	if v < 0 && v > -4096 {
		errno := unix.Errno(-v)
		if unix.ErrnoName(errno) == "" { // the kernel's own, as when a call is begun anew
			return fmt.Sprintf("-1 (%v)", errno)
		}
		return fmt.Sprintf("-1 %s (%v)", unix.ErrnoName(errno), errno)
	}
	switch name {
	case "mmap", "brk", "mremap":
		return fmt.Sprintf("%#x", uint64(v))
	}
	return strconv.FormatInt(v, 10)
}

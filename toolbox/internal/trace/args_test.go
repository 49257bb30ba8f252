// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// space is some memory of this process, behind which there is none: what a tracee's may be.
type space struct {
	mem  []byte
	base uint64
}

const spaceSize = 4 * 4096

func newSpace(t testing.TB) *space {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, spaceSize+4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	if err := unix.Mprotect(mem[spaceSize:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	s := &space{mem[:spaceSize], uint64(uintptr(unsafe.Pointer(&mem[0])))}
	if got := memory(os.Getpid(), s.base, 8); len(got) != 8 {
		t.Skip("this kernel does not let a process read its own memory so")
	}
	return s
}

// end puts data where the memory ends, and says where that is.
func (s *space) end(data []byte) uint64 {
	clear(s.mem)
	n := copy(s.mem[max(0, len(s.mem)-len(data)):], data)
	return s.base + uint64(len(s.mem)-n)
}

// RS-13: what a tracee gives to calls is shown, whatever is at the end of its memory or behind it; nothing that it
// holds gets to the terminal unquoted.
func TestArguments(t *testing.T) {
	s, tr := newSpace(t), &tracer{size: 8}
	sock := func(family uint16, rest ...byte) string {
		return string(append(binary.NativeEndian.AppendUint16(nil, family), rest...))
	}
	none := s.base + spaceSize // where there is nothing
	const here, length = 1, 2  // stand for where the memory is, and how much
	for _, c := range []struct {
		call, memory string
		args         []uint64
		result       int64
		want         string
	}{
		{"open", "/etc/x\x00y", []uint64{here, unix.O_CREAT | unix.O_WRONLY | 1<<40, 0o644}, 3,
			`"/etc/x", O_WRONLY|O_CREAT|0x10000000000, 0644`},
		{"openat", "a\x1b[31m\u202e\n\x00", []uint64{^uint64(99), here, 0, 0}, 3, `AT_FDCWD, "a\x1b[31m\u202e\n", O_RDONLY, 0`},
		{"unlink", "without an end", []uint64{here}, 0, "HERE"},
		{"unlink", "", []uint64{0}, 0, "NULL"},
		{"unlink", "", []uint64{^uint64(0)}, 0, "0xffffffffffffffff"},
		{"unlink", strings.Repeat("p", 5000) + "\x00", []uint64{here}, 0, `"` + strings.Repeat("p", 5000) + `"`},
		{"unlink", strings.Repeat("p", spaceSize), []uint64{here}, 0, `"` + strings.Repeat("p", 4096) + `"...`},
		{"write", "0123456789", []uint64{1, here, length}, 10, `1, "01234567"..., 10`},
		{"write", "0123", []uint64{1, here, 1 << 62}, 4, `1, "0123"..., 4611686018427387904`},
		{"write", "0123", []uint64{1, here, ^uint64(0)}, -14, `1, "", -1`},
		{"write", "", []uint64{1, none, 3}, -14, "1, NONE, 3"},
		{"read", "0123", []uint64{0, here, 100}, 2, `0, "01", 100`},
		{"read", "0123", []uint64{0, here, 100}, -4, "0, HERE, 100"},
		{"connect", sock(unix.AF_INET, 1, 2, 127, 0, 0, 1), []uint64{3, here, length}, 0, "3, 127.0.0.1:258, 8"},
		{"connect", sock(unix.AF_INET6, append([]byte{0, 80, 0, 0, 0, 0}, append(make([]byte, 15), 1)...)...),
			[]uint64{3, here, length}, 0, "3, [::1]:80, 24"},
		{"connect", sock(unix.AF_INET, 1, 2, 127), []uint64{3, here, length}, -22, "3, {family 2}, 5"},
		{"connect", sock(unix.AF_UNIX, []byte("/run/x\x00\x00")...), []uint64{3, here, length}, 0, `3, "/run/x", 10`},
		{"connect", sock(unix.AF_UNIX, []byte("/run/x\x00left over")...), []uint64{3, here, length}, 0, `3, "/run/x", 18`},
		{"connect", sock(unix.AF_UNIX, []byte("\x00hidden\x00")...), []uint64{3, here, length}, 0, `3, "\x00hidden\x00", 10`},
		{"connect", sock(unix.AF_UNIX), []uint64{3, here, length}, 0, `3, "", 2`},
		{"connect", "", []uint64{3, 0, 16}, -14, "3, NULL, 16"},
		{"connect", "", []uint64{3, none, 16}, -14, "3, NONE, 16"},
		{"connect", "\x01", []uint64{3, here, ^uint64(0)}, -14, "3, HERE, -1"},
		{"execve", "", []uint64{0, none, 0}, 0, "NULL, NONE, 0x0"},
		{"execve", "", []uint64{0, 0, 0}, 0, "NULL, NULL, 0x0"},
		{"execve", strings.Repeat("\x00", 8), []uint64{0, here, 0}, 0, "NULL, [], 0x0"},
		{"execve", "\x01\x00\x00\x00\x00\x00\x00\x00", []uint64{0, here, 0}, 0, "NULL, [0x1, ...], 0x0"},
		{"execve", strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 30), []uint64{0, here, 0}, 0,
			"NULL, [" + strings.Repeat("0x1, ", 20) + "...], 0x0"},
		{"close", "", []uint64{0xffffffff}, -9, "-1"},
		{"unheard", "", []uint64{1, 2}, 0, "0x1, 0x2, 0x0, 0x0, 0x0, 0x0"},
	} {
		at := s.end([]byte(c.memory))
		var args [6]uint64
		for i, a := range c.args {
			switch {
			case c.memory != "" && a == here && strings.ContainsRune("prsav", rune(shapeOf(c.call)[i])):
				a = at
			case c.memory != "" && a == length && strings.ContainsRune("sa", rune(shapeOf(c.call)[i-1])):
				a = uint64(len(c.memory))
			}
			args[i] = a
		}
		want := strings.NewReplacer("HERE", "0x"+strconv.FormatUint(at, 16), "NONE", "0x"+strconv.FormatUint(none, 16)).Replace(c.want)
		if got := tr.arguments(os.Getpid(), c.call, args, c.result); got != want {
			t.Errorf("%s of %.60q: %.200s, want %.200s", c.call, c.memory, got, want)
		}
	}
}

func shapeOf(call string) string {
	if shape, ok := shapes()[call]; ok {
		return shape
	}
	return "xxxxxx"
}

// Every shape is of letters that are known, of six arguments at most; a text and a socket's address have their length
// behind them.
func TestShapes(t *testing.T) {
	for call, shape := range shapes() {
		if len(shape) > 6 || strings.Trim(shape, "pdxoFDsrav") != "" || strings.HasSuffix(shape, "s") || strings.HasSuffix(shape, "a") {
			t.Errorf("%s: %q", call, shape)
		}
	}
}

// What a call came to, in the kernel's words.
func TestResult(t *testing.T) {
	for _, c := range []struct {
		call string
		v    int64
		want string
	}{{"read", 7, "7"}, {"read", -2, "-1 ENOENT (no such file or directory)"}, {"read", -4095, "-1 (errno 4095)"}, {"read", -512, "-1 (errno 512)"},
		{"read", -4096, "-4096"}, {"mmap", 1 << 40, "0x10000000000"}, {"brk", -5000, "0xffffffffffffec78"}} {
		if got := result(c.call, c.v); got != c.want {
			t.Errorf("%s %d: %s, want %s", c.call, c.v, got, c.want)
		}
	}
}

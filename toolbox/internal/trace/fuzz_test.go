// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// FuzzArguments: whatever a tracee gives to a call and has in its memory, what is shown is of a bounded length and has
// no control sequences (RS-13); a path, a text and flags are the ones that the kernel takes.
func FuzzArguments(f *testing.F) {
	calls := slices.Sorted(maps.Keys(shapes()))
	for i, call := range calls {
		f.Add(uint16(i), []byte(call+"\x00\x1b]0;x\a"), uint64(0), uint64(8), uint64(2), int64(3))
	}
	number := func(call string) uint16 { return uint16(slices.Index(calls, call)) }
	for _, sock := range []string{"\x02\x00\x00\x50\x7f\x00\x00\x01", "\x01\x00/run/x\x00y", "\x01\x00\x00x", "\x0a\x00" + strings.Repeat("a", 26), "\x0a", "\x01\x00"} {
		f.Add(number("connect"), []byte(sock), uint64(0), uint64(0), uint64(len(sock)), int64(0))
		f.Add(number("bind"), []byte(sock), uint64(0), uint64(0), ^uint64(0), int64(0))
	}
	f.Add(number("execve"), []byte(strings.Repeat("\x00\x10\x00\x00\x00\x00\x00\x00", 30)), uint64(0), uint64(0), uint64(0), int64(0))
	f.Add(number("read"), []byte("x"), uint64(0), uint64(0), uint64(1<<63), int64(-1<<63))
	f.Add(number("write"), []byte("x"), uint64(0), ^uint64(0), ^uint64(7), int64(1<<62))
	f.Add(number("rename"), bytes.Repeat([]byte("p"), 9000), uint64(0), uint64(4000), uint64(0), int64(0))
	f.Fuzz(func(t *testing.T, which uint16, mem []byte, first, second, third uint64, result int64) {
		s, tr, call := newSpace(t), &tracer{size: 64}, calls[int(which)%len(calls)]
		at := s.end(mem)
		there := s.mem[at-s.base:]
		args := [6]uint64{first, second, third, first, second, third}
		for i, v := range args {
			if v <= uint64(len(there)) { // so small a number is a place in the memory, unless it is a length
				if i >= len(shapes()[call]) || !strings.ContainsRune("dx", rune(shapes()[call][i])) {
					args[i] = at + v
				}
			}
		}
		text := tr.arguments(os.Getpid(), call, args, result)
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q", call, text)
		}
		if most := 6 * 21 * 4 * 2 * unix.PathMax; len(text) > most {
			t.Errorf("%s: %d bytes", call, len(text))
		}
		if place := args[0]; place >= at && place < at+uint64(len(there)) {
			whole, _, ends := bytes.Cut(there[place-at:], []byte{0})
			if got := tr.path(os.Getpid(), place); ends && len(whole) < unix.PathMax && got != strconv.Quote(string(whole)) {
				t.Errorf("%q is shown as %s", whole, got)
			}
		}
		if again := flags(t, openFlags(first)); again != first {
			t.Errorf("%s are %#x, not %#x", openFlags(first), again, first)
		}
	})
}

// flags are those that a text names.
func flags(t *testing.T, text string) (all uint64) {
	t.Helper()
	named := map[string]uint64{"O_RDONLY": 0, "O_WRONLY": 1, "O_RDWR": 2, "O_ACCMODE": 3, "O_CREAT": unix.O_CREAT, "O_EXCL": unix.O_EXCL,
		"O_TRUNC": unix.O_TRUNC, "O_APPEND": unix.O_APPEND, "O_NONBLOCK": unix.O_NONBLOCK, "O_DIRECTORY": unix.O_DIRECTORY,
		"O_NOFOLLOW": unix.O_NOFOLLOW, "O_CLOEXEC": unix.O_CLOEXEC, "O_PATH": unix.O_PATH, "O_SYNC": unix.O_SYNC}
	for word := range strings.SplitSeq(text, "|") {
		bits, ok := named[word]
		if !ok {
			var err error
			if bits, err = strconv.ParseUint(word, 0, 64); err != nil {
				t.Errorf("%s in %s: %v", word, text, err)
			}
		}
		all |= bits
	}
	return all
}
